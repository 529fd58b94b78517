package load

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// StartAwake starts a system and returns when it works: when it has collected
// an object whose owner never existed. A health endpoint that answers says less,
// and not the same of each system. It also returns how long that took from the
// start of the process.
func StartAwake(ctx context.Context, cfg *rest.Config, s System) (*Running, time.Duration, error) {
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, 0, fmt.Errorf("start %s: %w", s.Name, err)
	}
	namespace, err := newNamespace(ctx, client, "canary")
	if err != nil {
		return nil, 0, fmt.Errorf("start %s: %w", s.Name, err)
	}
	in := client.Resource(ConfigMap.GVR()).Namespace(namespace.Name)
	absent := Object{Name: "nobody", UID: "00000000-0000-0000-0000-000000000001"}
	canary, err := create(ctx, in, ConfigMap, "canary", nil, nil, absent)
	if err != nil {
		return nil, 0, fmt.Errorf("start %s: %w", s.Name, err)
	}
	w, err := in.Watch(ctx, metav1.ListOptions{ResourceVersion: canary.ResourceVersion})
	if err != nil {
		return nil, 0, fmt.Errorf("start %s: %w", s.Name, err)
	}
	defer w.Stop()

	return startUntilDeleted(ctx, s, w)
}

// StartDraining starts a system and returns when it empties namespaces: when one
// that was deleted before is gone.
func StartDraining(ctx context.Context, cfg *rest.Config, s System) (*Running, error) {
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", s.Name, err)
	}
	namespaces := client.Resource(namespaceKind.GVR())
	canary, err := newNamespace(ctx, client, "canary")
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", s.Name, err)
	}
	w, err := namespaces.Watch(ctx, metav1.ListOptions{
		FieldSelector: "metadata.name=" + canary.Name, ResourceVersion: canary.ResourceVersion,
	})
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", s.Name, err)
	}
	defer w.Stop()
	if err := namespaces.Delete(ctx, canary.Name, metav1.DeleteOptions{}); err != nil {
		return nil, fmt.Errorf("start %s: %w", s.Name, err)
	}
	r, _, err := startUntilDeleted(ctx, s, w)
	return r, err
}

// startUntilDeleted starts a system and returns when what w watches is gone.
func startUntilDeleted(ctx context.Context, s System, w watch.Interface) (*Running, time.Duration, error) {
	started := time.Now()
	r, err := s.Start(ctx)
	if err != nil {
		return nil, 0, err
	}
	for {
		select {
		case e, ok := <-w.ResultChan():
			if ok && e.Type == watch.Deleted {
				return r, time.Since(started), nil
			}
			if ok && e.Type != watch.Error {
				continue
			}
			err = fmt.Errorf("start %s: the watch of its first work ended", s.Name)
		case <-r.Exited():
			err = fmt.Errorf("start %s: it ended; its log ends with\n%s", s.Name, r.Tail(20))
		case <-ctx.Done():
			err = fmt.Errorf("start %s: wait for its first work: %w", s.Name, ctx.Err())
		}
		_ = r.Stop() // the first error says more
		return nil, 0, err
	}
}
