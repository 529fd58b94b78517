package load

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// An Ending is what became of one object that was deleted.
type Ending struct {
	Answered, Gone time.Duration // after the request was sent
	// Terminated is how long it was seen to terminate; 0: it went at once.
	Terminated time.Duration
}

// Endings has cfg's user delete the dependents of a population one by one, each when the one before
// is gone, and tells how each of them went: what the user and whoever holds it take, with nothing
// else to do.
func Endings(ctx context.Context, admin, cfg *rest.Config, p *Population) (all []Ending, err error) {
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
		began := time.Now()
		err := user.Resource(gvr).Namespace(p.Namespace).Delete(ctx, o.Name, metav1.DeleteOptions{PropagationPolicy: &policy, Preconditions: &metav1.Preconditions{UID: &o.UID}})
		if err != nil {
			return nil, fmt.Errorf("time endings: %w", err)
		}
		e := Ending{Answered: time.Since(began)}
		if e.Terminated, err = ending(ctx, w.ResultChan(), o); err != nil {
			return nil, fmt.Errorf("time the ending of %s: %w", o.Name, err)
		}
		e.Gone = time.Since(began)
		all = append(all, e)
	}
	return all, nil
}

// ending waits until an object is gone, and tells how long it was seen to terminate.
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
				return 0, nil
			case e.Type == watch.Deleted:
				return time.Since(terminates), nil
			}
		}
	}
}
