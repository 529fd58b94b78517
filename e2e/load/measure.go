package load

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// A Result is one cascade or one draining, measured.
type Result struct {
	// Dependents are the objects that go because another was deleted: below an owner, or in a
	// namespace.
	Dependents int
	// Began is when the first request was sent.
	Began time.Time
	// Took runs from sending the first request to the end of the last object.
	Took time.Duration
	// First runs to the end of the first dependent, or of the first of several namespaces, as the
	// driver saw it.
	First time.Duration
}

// Rate is dependents per second.
func (r Result) Rate() float64 { return float64(r.Dependents) / r.Took.Seconds() }

// Measure runs act, which sets the cascade off, and waits for its end.
func Measure(
	ctx context.Context, cfg *rest.Config, p *Population, policy metav1.DeletionPropagation, act func(context.Context) error,
) (Result, error) {
	client, err := metadata.NewForConfig(cfg)
	if err != nil {
		return Result{}, err
	}
	f := &Follow{In: client.Resource(p.Layout.Kind.GVR()).Namespace(p.Namespace), Patience: cascadePatience,
		Orphan: policy == metav1.DeletePropagationOrphan, Pending: map[types.UID]bool{p.Owner.UID: true}, Ended: p.Ended}
	for _, o := range p.Dependents {
		f.Pending[o.UID] = false
	}
	result, err := f.Measure(ctx, act)
	result.Dependents = len(p.Dependents)
	return result, err
}

// cascadePatience is far more than any system pauses, at any limit.
const cascadePatience = time.Minute

// A Follow watches objects until nothing of them is left to do. It is one watch from before the
// first request, not lists in a loop, so that looking costs the API server little and every system
// the same: one LIST and one WATCH.
type Follow struct {
	In metadata.ResourceInterface
	// Pending are those that are to go, and whether one is the owner.
	Pending map[types.UID]bool
	// Orphan: the dependents are not to go, but to have no owner any more.
	Orphan bool
	// Patience is how long nothing may happen.
	Patience time.Duration
	// Ended is told of each dependent that is done, if it is set.
	Ended func(time.Time)

	watch       watch.Interface
	first, last time.Time // when dependents were done
}

// Measure runs act, which sets things off, and waits for their end.
func (f *Follow) Measure(ctx context.Context, act func(context.Context) error) (Result, error) {
	list, err := f.In.List(ctx, metav1.ListOptions{Limit: 1})
	if err == nil {
		f.watch, err = f.In.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	}
	if err != nil {
		return Result{}, fmt.Errorf("follow: %w", err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	started, acted := time.Now(), make(chan struct{})
	go func() {
		defer close(acted)
		if err := act(ctx); err != nil {
			cancel(err)
		}
	}()
	err = f.run(ctx)
	<-acted
	return Result{Began: started, Took: f.last.Sub(started), First: f.first.Sub(started)}, err
}

// run returns when everything is done: each dependent gone, or released, and the owner gone.
func (f *Follow) run(ctx context.Context) error {
	defer func() { f.watch.Stop() }()
	stall := time.NewTimer(f.Patience)
	defer stall.Stop()
	for len(f.Pending) > 0 {
		select {
		case <-stall.C:
			return fmt.Errorf("wait for %d objects: nothing happened for %s", len(f.Pending), f.Patience)
		case <-ctx.Done():
			return fmt.Errorf("wait for %d objects: %w", len(f.Pending), context.Cause(ctx))
		case e, ok := <-f.watch.ResultChan():
			stall.Reset(f.Patience)
			if o, isObject := e.Object.(*metav1.PartialObjectMetadata); isObject {
				f.see(o, e.Type == watch.Deleted)
			} else if !ok || e.Type == watch.Error {
				// The API server drops a watcher that falls behind.
				if err := f.restart(ctx); err != nil {
					return fmt.Errorf("follow: %w", err)
				}
			}
		}
	}
	return nil
}

// see notes that an object is done, if it is.
func (f *Follow) see(o *metav1.PartialObjectMetadata, gone bool) {
	owner, pending := f.Pending[o.UID]
	if released := f.Orphan && !owner && len(o.OwnerReferences) == 0; !pending || !gone && !released {
		return
	}
	delete(f.Pending, o.UID)
	f.last = time.Now()
	if owner {
		return
	}
	if f.first.IsZero() {
		f.first = f.last
	}
	if f.Ended != nil {
		f.Ended(f.last)
	}
}

// restart lists what is there and watches on from that point.
func (f *Follow) restart(ctx context.Context) error {
	f.watch.Stop()
	list, err := f.In.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	there := map[types.UID]bool{}
	for i := range list.Items {
		there[list.Items[i].UID] = true
		f.see(&list.Items[i], false)
	}
	for uid := range f.Pending {
		if !there[uid] {
			f.see(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{UID: uid}}, true)
		}
	}
	f.watch, err = f.In.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	return err
}
