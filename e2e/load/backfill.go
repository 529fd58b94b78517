package load

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// Stamped starts something, and waits until every dependent of a population carries weir's finalizer.
func Stamped(ctx context.Context, cfg *rest.Config, p *Population, start func() error) (took time.Duration, err error) {
	client, err := metadata.NewForConfig(cfg)
	if err != nil {
		return 0, fmt.Errorf("follow stamps: %w", err)
	}
	in := client.Resource(p.Shape.Kind.gvr()).Namespace(p.Namespace)
	left := map[types.UID]bool{}
	for _, o := range p.Dependents {
		left[o.UID] = true
	}
	seen := func(m *metav1.PartialObjectMetadata) {
		if slices.Contains(m.Finalizers, weirFinalizer) {
			delete(left, m.UID)
		}
	}
	began := time.Now()
	if err := start(); err != nil {
		return 0, err
	}
	for len(left) > 0 {
		list, err := in.List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return 0, fmt.Errorf("follow stamps: %w", err)
		}
		for i := range list.Items {
			seen(&list.Items[i])
		}
		if err := untilStamped(ctx, in, list.ResourceVersion, left, seen); err != nil {
			return 0, err
		}
	}
	return time.Since(began), nil
}

// untilStamped follows one watch until nothing is left, or it ends.
func untilStamped(ctx context.Context, in metadata.ResourceInterface, from string, left map[types.UID]bool, seen func(*metav1.PartialObjectMetadata)) error {
	w, err := in.Watch(ctx, metav1.ListOptions{ResourceVersion: from})
	if err != nil {
		return fmt.Errorf("follow stamps: %w", err)
	}
	defer w.Stop()
	stall := time.NewTimer(cascadePatience)
	defer stall.Stop()
	for len(left) > 0 {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-stall.C:
			return fmt.Errorf("wait for %d objects to be stamped: nothing happened for %s", len(left), cascadePatience)
		case e, ok := <-w.ResultChan():
			if !ok || e.Type == watch.Error {
				return nil // it fell behind: listed anew
			}
			stall.Reset(cascadePatience)
			if m, ok := e.Object.(*metav1.PartialObjectMetadata); ok {
				seen(m)
			}
		}
	}
	return nil
}

// Latencies asks for an object again and again, until stop is called, and returns how long each answer took.
func Latencies(ctx context.Context, cfg *rest.Config, p *Population) (stop func() ([]time.Duration, error)) {
	ctx, cancel := context.WithCancel(ctx)
	var all []time.Duration
	var failed error
	var wg sync.WaitGroup
	wg.Go(func() {
		client, err := metadata.NewForConfig(cfg)
		if err != nil {
			failed = err
			return
		}
		in := client.Resource(p.Shape.Kind.gvr()).Namespace(p.Namespace)
		for ctx.Err() == nil {
			began := time.Now()
			if _, err := in.Get(ctx, p.Owner.Name, metav1.GetOptions{}); err != nil && ctx.Err() == nil {
				failed = errors.Join(failed, err)
				return
			}
			all = append(all, time.Since(began))
			if Pause(ctx, 5*time.Millisecond) != nil {
				return
			}
		}
	})
	return func() ([]time.Duration, error) { cancel(); wg.Wait(); return all, failed }
}
