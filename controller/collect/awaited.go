package collect

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/request"
)

const (
	// awaitedFor is how long an answer about an owner holds.
	awaitedFor = time.Second
	// mostAwaited bounds the owners whose answers are remembered.
	mostAwaited = 10_000
)

// answer is what a live read said about an owner.
type answer struct {
	at  time.Time // when the read began
	err error     // nil if the owner waits, or is gone
}

// stillAwaited makes sure, before a delete, that every owner that waits for the object still does,
// or is gone. The error is request.ErrOwnerChanged if one does not.
//
// A foreground deletion can be turned into one that orphans, by another DELETE (RB 6.34), and a
// watch may show that late, or never while its kind is broken. So what an owner awaits is deleted
// only after a live read of the owner, as in the reference (RB 3.15): one a second for all its
// dependents, begun after each of them had something to do.
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

// awaits returns nil if a live read shows that an owner waits for its dependents, or is gone. A
// read that was already under way for others may have begun too early, and is repeated.
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

// readOwner reads an owner live. What is known then is remembered; that a read failed is not.
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
	live, err := w.Requester.Get(ctx, gv, c.Resource.Resource, namespace, c.Name)
	switch {
	case request.NoSuchObject(err, c.Resource, c.Name), err == nil && live.UID != c.UID:
	case request.IsBusy(err): // not wrapped: it is the owner's kind that is put off, not the object's
		said.err = fmt.Errorf("read the owner %s %q: %s", c.Resource, c.Name, err.Error())
		return said
	case err != nil:
		said.err = fmt.Errorf("read the owner %s %q: %w", c.Resource, c.Name, err)
		return said
	case !w.Store.Awaits(c.Resource, live):
		said.err = fmt.Errorf("the owner %s %q: %w", c.Resource, c.Name, request.ErrOwnerChanged)
	}
	w.awaited.Add(c.UID, said, awaitedFor-time.Since(said.at))
	return said
}
