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

// checkEvery is how often what is to be done is tried, and the wall clock is read: a timer does not
// run in a suspended machine.
const checkEvery = 5 * time.Second

// followSecret passes a Secret to see whenever it changes, nil when it is gone, until ctx ends; a
// slow see gets only the latest state. what says in messages whose Secret it is. then is called
// when it is known whether there is a Secret, after each change, and every checkEvery.
func followSecret(ctx context.Context, client kubernetes.Interface, namespace, name, what string,
	reports *reporter, see func(*corev1.Secret), then func()) error {
	latest, failed := make(chan *corev1.Secret, 1), make(chan error, 1)
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
		}))
	informer := factory.Core().V1().Secrets().Informer()
	found := func(o any) {
		if s, ok := o.(*corev1.Secret); ok {
			replace(latest, s)
		}
	}
	err := informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		replace(failed, err)
	})
	var handler cache.ResourceEventHandlerRegistration
	if err == nil { // one goroutine of the informer's calls these, in order
		handler, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: found,
			UpdateFunc: func(_, o any) { found(o) }, DeleteFunc: func(any) { replace(latest, nil) }})
	}
	if err != nil {
		return fmt.Errorf("watch Secret %s/%s: %w", namespace, name, err)
	}
	factory.Start(ctx.Done())
	known := handler.HasSyncedChecker().Done()
	ticker := time.NewTicker(checkEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case s := <-latest:
			reports.report("watch the Secret of "+what, nil)
			see(s)
		case err := <-failed:
			reports.report("watch the Secret of "+what, err)
		case <-known:
			known = nil
		case <-ticker.C:
		}
		then()
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
