package collect

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/request"
)

const (
	// awaitedFor is for how long it holds that an owner was seen to wait for its dependents, or not
	// to.
	awaitedFor = time.Second
	// mostAwaited bounds of how many owners that is remembered.
	mostAwaited = 10_000
)

// answer is what an API server said of an owner when it was asked.
type answer struct {
	at  time.Time // when the read began
	err error     // nil: the owner waits, or is gone
}

// stillAwaited makes sure that every owner that waits for the object of a delete still does, or is
// gone. The error is request.ErrOwnerChanged if one does not.
//
// A deletion in the foreground can be taken back, by another DELETE that orphans (RB 6.34), and a
// watch may show that late, or never while its kind is broken. So what an owner awaits is deleted
// only on the word of a live read, as in the reference (RB 3.15): one a second for all its
// dependents, begun after there was something to do about each of them.
func (w *Workers) stillAwaited(ctx context.Context, a graph.Action) error {
	if len(a.AwaitedBy) == 0 {
		return nil
	}
	since, known := w.ages.get(a.Object.UID)
	if !known {
		since = time.Now()
	}
	for _, c := range a.AwaitedBy {
		if err := w.awaits(ctx, c, since); err != nil {
			return err
		}
	}
	return nil
}

// awaits is nil where an owner was seen by a read to wait for its dependents, or to be gone. A read
// that was under way already for others may have begun too early.
func (w *Workers) awaits(ctx context.Context, c graph.Claim, since time.Time) error {
	if said, ok := w.awaited.Get(c.UID); ok && !said.(answer).at.Before(since) {
		return said.(answer).err
	}
	for {
		said, _, _ := w.reads.Do(string(c.UID), func() (any, error) { return w.readOwner(ctx, c), nil })
		if said := said.(answer); !said.at.Before(since) {
			return said.err
		}
	}
}

// readOwner reads an owner live.
func (w *Workers) readOwner(ctx context.Context, c graph.Claim) answer {
	said := answer{at: time.Now()}
	gv, err := schema.ParseGroupVersion(c.APIVersion)
	if err != nil {
		said.err = err
		return said
	}
	namespace := ""
	if c.Namespaced {
		namespace = c.Namespace
	}
	said.err = w.goneOrAwaits(ctx, gv, c.Resource, namespace, c.Name, c.UID)
	if said.err == nil || errors.Is(said.err, request.ErrOwnerChanged) {
		w.awaited.Add(c.UID, said, awaitedFor-time.Since(said.at))
	}
	return said
}

// goneOrAwaits is nil where an owner, as it is read live, is gone or waits for its dependents, and
// request.ErrOwnerChanged where neither is so.
func (w *Workers) goneOrAwaits(ctx context.Context, gv schema.GroupVersion, kind schema.GroupResource, namespace, name string, uid types.UID) error {
	live, err := w.requester.Get(ctx, gv, kind.Resource, namespace, name)
	switch {
	case request.NoSuchObject(err, kind, name), err == nil && live.UID != uid:
		return nil
	case request.IsBusy(err): // not wrapped: that its kind is not asked now says nothing of the object's
		return fmt.Errorf("read the owner %s %q: %s", kind, name, err.Error())
	case err != nil:
		return fmt.Errorf("read the owner %s %q: %w", kind, name, err)
	case !w.store.Awaits(kind, live):
		return fmt.Errorf("the owner %s %q: %w", kind, name, request.ErrOwnerChanged)
	}
	return nil
}
