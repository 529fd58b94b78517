package certs

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// secretWatch follows one Secret. A slow reader gets only the latest state.
type secretWatch struct {
	found  chan *corev1.Secret // the latest; nil when it is gone
	failed chan error          // the latest error of the watch
}

func watchSecret(ctx context.Context, client kubernetes.Interface, namespace, name string) (*secretWatch, error) {
	w := &secretWatch{found: make(chan *corev1.Secret, 1), failed: make(chan error, 1)}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
		}))
	informer := factory.Core().V1().Secrets().Informer()
	if err := informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		replace(w.failed, err)
	}); err != nil {
		return nil, fmt.Errorf("watch Secret %s/%s: %w", namespace, name, err)
	}
	// One goroutine of the informer's calls these, in order.
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { w.see(o) },
		UpdateFunc: func(_, o any) { w.see(o) },
		DeleteFunc: func(any) { replace(w.found, nil) },
	}); err != nil {
		return nil, fmt.Errorf("watch Secret %s/%s: %w", namespace, name, err)
	}
	factory.Start(ctx.Done())
	return w, nil
}

// follow passes the Secret to see whenever it changes, until ctx ends. what says in messages whose
// Secret it is. then is called after each change, and every so often.
func (w *secretWatch) follow(
	ctx context.Context, what string, every time.Duration, reports *reporter, see func(*corev1.Secret), then func(),
) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case found := <-w.found:
			reports.report("watch the Secret of "+what, nil)
			see(found)
		case err := <-w.failed:
			reports.report("watch the Secret of "+what, err)
		case <-ticker.C:
		}
		then()
	}
}

func (w *secretWatch) see(o any) {
	if s, ok := o.(*corev1.Secret); ok {
		replace(w.found, s)
	}
}

// replace puts v into a channel that holds one value, in place of one that was not taken. It has
// one caller at a time.
func replace[T any](ch chan T, v T) {
	select {
	case <-ch:
	default:
	}
	ch <- v
}
