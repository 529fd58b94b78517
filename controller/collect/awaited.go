package collect

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/request"
)

const (
	// awaitedFor is for how long it holds that an owner was seen to wait for its dependents, or not
	// to.
	awaitedFor = time.Second
	// meanwhile is how long after that a dependent may have come to be deleted. One that comes
	// later may have been made on the word of a client who took the deletion back: it gets a read
	// of its own.
	meanwhile = 100 * time.Millisecond
)

// awaited remembers owners that waited for their dependents a moment ago. A deletion in the
// foreground can be taken back, by another DELETE that orphans (RB 6.34), and a watch may show that
// late, or never while its kind is broken. So what an owner awaits is deleted only on the word of a
// live read, as in the reference (RB 3.15): one for all its dependents that are there, twice in
// awaitedFor at most, and one more for those that come later.
type awaited struct {
	reads singleflight.Group
	ahead sync.WaitGroup // reads that nobody waits for; a worker starts them
	mu    sync.Mutex
	seen  map[types.UID]answer
	swept time.Time
}

// answer is what an API server said when it was asked.
type answer struct {
	at      time.Time
	err     error // nil: the owner waits, or is gone
	renewed bool  // it is being asked again, before this does not count any more
}

// saw takes in what was said of an owner.
func (w *awaited) saw(uid types.UID, a answer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if a.at.Sub(w.swept) > awaitedFor {
		w.swept = a.at
		maps.DeleteFunc(w.seen, func(_ types.UID, old answer) bool { return a.at.Sub(old.at) > awaitedFor })
	}
	w.seen[uid] = a
}

// recently is what was said a moment ago of an owner, if that counts for what has been to be
// deleted since. renew: who asks is to ask the API server again, so that who comes later need not
// wait for it.
func (w *awaited) recently(uid types.UID, since time.Time) (a answer, ok, renew bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	a, ok = w.seen[uid]
	age := time.Since(a.at)
	if ok = ok && age < awaitedFor && since.Sub(a.at) < meanwhile; ok && age > awaitedFor/2 && !a.renewed {
		renew, a.renewed = true, true
		w.seen[uid] = a
	}
	return a, ok, renew
}

// stillAwaited makes sure that every owner that waits for the object of a delete still does, or is
// gone. The error is request.ErrOwnerChanged if one does not.
func (w *Workers) stillAwaited(ctx context.Context, a graph.Action) error {
	since, known := w.ages.get(a.Object.UID)
	if !known {
		since = time.Now()
	}
	for _, c := range a.AwaitedBy {
		said, ok, renew := w.awaited.recently(c.UID, since)
		if renew {
			w.awaited.ahead.Go(func() {
				read := func() (any, error) { return nil, w.awaits(ctx, c) }
				_, _, _ = w.awaited.reads.Do(string(c.UID), read) // saw has what was said
			})
		}
		if !ok {
			_, said.err, _ = w.awaited.reads.Do(string(c.UID), func() (any, error) {
				if a, ok, _ := w.awaited.recently(c.UID, since); ok {
					return nil, a.err // another had it read in between
				}
				return nil, w.awaits(ctx, c)
			})
			if _, ok, _ = w.awaited.recently(c.UID, since); said.err == nil && !ok { // the read was under way before that, for others
				said.err = w.awaits(ctx, c)
			}
		}
		if said.err != nil {
			return said.err
		}
	}
	return nil
}

// awaits reads an owner live.
func (w *Workers) awaits(ctx context.Context, c graph.Claim) error {
	gv, err := schema.ParseGroupVersion(c.APIVersion)
	if err != nil {
		return err
	}
	namespace := ""
	if c.Namespaced {
		namespace = c.Namespace
	}
	began := time.Now()
	err = w.goneOrAwaits(ctx, gv, c.Resource, namespace, c.Name, c.UID)
	if err == nil || errors.Is(err, request.ErrOwnerChanged) {
		w.awaited.saw(c.UID, answer{at: began, err: err})
	}
	return err
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
