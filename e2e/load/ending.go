package load

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// Endings has cfg's user delete the dependents of a population one by one, each when the one before
// is gone, and tells how long each was seen to terminate: what whoever holds it takes, with nothing
// else to do. Each of them must carry a finalizer.
func Endings(ctx context.Context, admin, cfg *rest.Config, p *Population) (took []time.Duration, err error) {
	watcher, err := metadata.NewForConfig(admin)
	if err != nil {
		return nil, fmt.Errorf("time endings: %w", err)
	}
	user, err := metadata.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("time endings: %w", err)
	}
	gvr := p.Layout.Kind.GVR()
	list, err := watcher.Resource(gvr).Namespace(p.Namespace).List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return nil, fmt.Errorf("time endings: %w", err)
	}
	w, err := watcher.Resource(gvr).Namespace(p.Namespace).Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		return nil, fmt.Errorf("time endings: %w", err)
	}
	defer w.Stop()
	policy := metav1.DeletePropagationBackground
	for _, o := range p.Dependents {
		err := user.Resource(gvr).Namespace(p.Namespace).Delete(ctx, o.Name, metav1.DeleteOptions{PropagationPolicy: &policy, Preconditions: &metav1.Preconditions{UID: &o.UID}})
		if err != nil {
			return nil, fmt.Errorf("time endings: %w", err)
		}
		ending, err := ending(ctx, w.ResultChan(), o)
		if err != nil {
			return nil, fmt.Errorf("time the ending of %s: %w", o.Name, err)
		}
		took = append(took, ending)
	}
	return took, nil
}

// ending is how long an object is seen to terminate.
func ending(ctx context.Context, events <-chan watch.Event, o Object) (time.Duration, error) {
	var terminates time.Time
	stall := time.NewTimer(cascadePatience)
	defer stall.Stop()
	for {
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-stall.C:
			return 0, fmt.Errorf("it is still there after %s", cascadePatience)
		case e, ok := <-events:
			m, isObject := e.Object.(*metav1.PartialObjectMetadata)
			switch {
			case !ok || !isObject:
				return 0, fmt.Errorf("the watch ended: %v", e.Object)
			case m.UID != o.UID:
			case e.Type != watch.Deleted && m.DeletionTimestamp != nil && terminates.IsZero():
				terminates = time.Now()
			case e.Type == watch.Deleted && terminates.IsZero():
				return 0, errors.New("it went at once")
			case e.Type == watch.Deleted:
				return time.Since(terminates), nil
			}
		}
	}
}
