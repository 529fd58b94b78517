package load

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// ForeignFinalizer is one that no part of Kubernetes nor Weir knows.
const ForeignFinalizer = "bench.weir.dev/held"

// RemoveFinalizers does what the simplest controller with a finalizer does for a population while
// act runs: whatever of it terminates is released by one PATCH, from Clients goroutines, with the
// uid and the resourceVersion that the watch showed. No policy, no graph, no limit: so what an
// object with a finalizer costs at the least is seen. act has to wait for their end: nothing is
// removed once it has returned.
func RemoveFinalizers(ctx context.Context, cfg *rest.Config, p *Population, act func(context.Context) error) error {
	client, err := metadata.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("remove finalizers: %w", err)
	}
	in := client.Resource(p.Layout.Kind.GVR()).Namespace(p.Namespace)
	list, err := in.List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return fmt.Errorf("remove finalizers: %w", err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	// As many places as there are objects: the watch never waits.
	queue := make(chan *metav1.PartialObjectMetadata, len(p.Dependents)+1)
	var group sync.WaitGroup
	group.Go(func() {
		defer close(queue)
		if err := terminating(ctx, in, list.ResourceVersion, queue); err != nil {
			cancel(err)
		}
	})
	for range Clients {
		group.Go(func() {
			for m := range queue {
				if err := unhold(ctx, in, m); err != nil {
					cancel(err)
				}
			}
		})
	}
	err = act(ctx)
	if cause := context.Cause(ctx); err == nil && cause != nil {
		err = cause
	}
	cancel(nil)
	group.Wait()
	return err
}

// terminating passes on what is being deleted and held, each object once, until ctx ends.
func terminating(ctx context.Context, in metadata.ResourceInterface, from string, queue chan<- *metav1.PartialObjectMetadata) error {
	passed := map[types.UID]bool{}
	pass := func(m *metav1.PartialObjectMetadata) {
		if m.DeletionTimestamp == nil || passed[m.UID] || !slices.Contains(m.Finalizers, ForeignFinalizer) {
			return
		}
		passed[m.UID] = true
		select {
		case queue <- m:
		case <-ctx.Done():
		}
	}
	for {
		err := followed(ctx, in, from, pass)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		// The API server drops a watcher that falls behind.
		list, err := in.List(ctx, metav1.ListOptions{})
		if err != nil {
			return fmt.Errorf("remove finalizers: %w", err)
		}
		for i := range list.Items {
			pass(&list.Items[i])
		}
		from = list.ResourceVersion
	}
}

// followed tells f of what one watch shows, until it ends.
func followed(ctx context.Context, in metadata.ResourceInterface, from string, f func(*metav1.PartialObjectMetadata)) error {
	w, err := in.Watch(ctx, metav1.ListOptions{ResourceVersion: from})
	if err != nil {
		return fmt.Errorf("remove finalizers: %w", err)
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		if m, ok := e.Object.(*metav1.PartialObjectMetadata); ok && e.Type != watch.Deleted {
			f(m)
		}
	}
	return nil
}

// unhold takes the finalizer off. Where the object has been changed meanwhile, which only a
// collector does, it is tried without a resourceVersion.
func unhold(ctx context.Context, in metadata.ResourceInterface, m *metav1.PartialObjectMetadata) error {
	left := slices.DeleteFunc(slices.Clone(m.Finalizers), func(f string) bool { return f == ForeignFinalizer })
	for _, version := range []string{m.ResourceVersion, ""} {
		meta := map[string]any{"uid": m.UID, "finalizers": left}
		if version != "" {
			meta["resourceVersion"] = version
		}
		patch, err := json.Marshal(map[string]any{"metadata": meta})
		if err != nil {
			return err
		}
		_, err = in.Patch(ctx, m.Name, types.MergePatchType, patch, metav1.PatchOptions{})
		if err == nil || apierrors.IsNotFound(err) || ctx.Err() != nil {
			return nil
		}
		if !apierrors.IsConflict(err) {
			return fmt.Errorf("take the finalizer off %s: %w", m.Name, err)
		}
	}
	return fmt.Errorf("take the finalizer off %s: two conflicts", m.Name)
}
