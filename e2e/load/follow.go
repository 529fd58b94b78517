package load

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
)

// follow watches a population until nothing of it is left to do. It is one
// watch from before the first request, not lists in a loop, so that looking
// costs the API server little and every system the same.
type follow struct {
	in       metadata.ResourceInterface
	orphan   bool
	pending  map[types.UID]bool // whether it is the owner
	watch    watch.Interface
	patience time.Duration // how long nothing may happen
	first    time.Time     // when the first dependent was done
	last     time.Time
	ended    func(time.Time) // told of each dependent that is done, if it is set
}

// cascadePatience is far more than any system pauses, at any limit.
const cascadePatience = time.Minute

func newFollow(ctx context.Context, client metadata.Interface, p *Population, policy metav1.DeletionPropagation) (*follow, error) {
	f := &follow{
		in:       client.Resource(p.Layout.Kind.GVR()).Namespace(p.Namespace),
		orphan:   policy == metav1.DeletePropagationOrphan,
		pending:  map[types.UID]bool{p.Owner.UID: true},
		patience: cascadePatience,
		ended:    p.Ended,
	}
	for _, o := range p.Dependents {
		f.pending[o.UID] = false
	}
	if err := f.begin(ctx); err != nil {
		return nil, fmt.Errorf("follow %s: %w", p.Namespace, err)
	}
	return f, nil
}

// begin costs one LIST and one WATCH.
func (f *follow) begin(ctx context.Context) error {
	list, err := f.in.List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return err
	}
	f.watch, err = f.in.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	return err
}

// measure runs act, which sets things off, and waits for their end.
func (f *follow) measure(ctx context.Context, act func(context.Context) error) (Result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	started := time.Now()
	acted := make(chan struct{})
	go func() {
		defer close(acted)
		if err := act(ctx); err != nil {
			cancel(err)
		}
	}()
	err := f.run(ctx)
	<-acted
	if err != nil {
		return Result{}, err
	}
	return Result{Began: started, Took: f.last.Sub(started), First: f.first.Sub(started)}, nil
}

// run returns when everything is done: each dependent gone, or released where
// the owner is deleted as an orphan maker, and the owner gone.
func (f *follow) run(ctx context.Context) error {
	defer func() { f.watch.Stop() }()
	stall := time.NewTimer(f.patience)
	defer stall.Stop()
	for len(f.pending) > 0 {
		select {
		case <-stall.C:
			return fmt.Errorf("wait for %d objects: nothing happened for %s", len(f.pending), f.patience)
		case <-ctx.Done():
			return fmt.Errorf("wait for %d objects: %w", len(f.pending), context.Cause(ctx))
		case e, ok := <-f.watch.ResultChan():
			stall.Reset(f.patience)
			if !ok || e.Type == watch.Error {
				// The API server drops a watcher that falls behind.
				if err := f.restart(ctx); err != nil {
					return err
				}
				continue
			}
			o, ok := e.Object.(*metav1.PartialObjectMetadata)
			if !ok {
				return fmt.Errorf("follow: unexpected event %s of %T", e.Type, e.Object)
			}
			if e.Type == watch.Deleted || f.orphan && len(o.OwnerReferences) == 0 {
				f.done(o.UID, e.Type == watch.Deleted)
			}
		}
	}
	return nil
}

func (f *follow) done(uid types.UID, gone bool) {
	owner, ok := f.pending[uid]
	if !ok || owner && !gone {
		return
	}
	delete(f.pending, uid)
	f.last = time.Now()
	if f.ended != nil && !owner {
		f.ended(f.last)
	}
	if f.first.IsZero() && !owner {
		f.first = f.last
	}
}

// restart lists what is there and watches on from that point.
func (f *follow) restart(ctx context.Context) error {
	f.watch.Stop()
	list, err := f.in.List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("follow: %w", err)
	}
	there := map[types.UID]bool{}
	for _, o := range list.Items {
		there[o.UID] = true
		if f.orphan && len(o.OwnerReferences) == 0 {
			f.done(o.UID, false)
		}
	}
	for uid := range f.pending {
		if !there[uid] {
			f.done(uid, true)
		}
	}
	w, err := f.in.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		return fmt.Errorf("follow: %w", err)
	}
	f.watch = w
	return nil
}
