package brake

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/await"
	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/words"
)

// root is an object that was deleted by request, and is held by a finalizer.
type root struct {
	graph.Ref
	by         string // the policy that limits it
	most, goes int
	// counted is the value of goes that people are told, and decide about. It is updated when goes
	// exceeds it by more than the limit.
	counted int
}

// requested holds the roots that are held, and those that a person has let go. It has no clock and
// no lock.
type requested struct {
	roots   map[types.UID]root
	since   map[schema.GroupResource]time.Time // of the kinds that are held, or were when Weir last ran
	decided map[types.UID]int                  // with how many objects each was to go
}

func newRequested() requested {
	return requested{
		roots: map[types.UID]root{}, since: map[schema.GroupResource]time.Time{}, decided: map[types.UID]int{},
	}
}

// holds updates how many objects would also be deleted, and reports whether the root is held. began
// is true if it was not held before. A decision covers the number that was shown, and as many more
// as the limit, which need no decision.
func (q *requested) holds(r root, now time.Time) (held, began bool) {
	before, was := q.roots[r.UID]
	if seen, decided := q.decided[r.UID]; r.goes <= r.most || decided && r.goes <= seen+r.most {
		delete(q.roots, r.UID)
		return false, false
	}
	if r.counted = r.goes; was && r.goes <= before.counted+r.most {
		r.counted = before.counted
	}
	q.roots[r.UID] = r
	if q.since[r.Kind].IsZero() {
		q.since[r.Kind] = now
	}
	return true, !was
}

// of returns the roots of a kind, by name.
func (q *requested) of(kind schema.GroupResource) (all []root) {
	for _, r := range q.roots {
		if r.Kind == kind {
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(a, b root) int { return cmp.Compare(a.String(), b.String()) })
	return all
}

// Requested reports whether the requested deletion of an object is held: more would also be deleted
// than a policy allows, and no person has let it go. The caller asks again while it is held, and
// when requeued by a decision.
func (b *Brake) Requested(o graph.Ref, by string, most, goes int) (held bool) {
	b.mu.Lock()
	held, began := b.holds(root{Ref: o, by: by, most: most, goes: goes}, time.Now())
	b.mu.Unlock()
	if began {
		b.Log.Info("held: a policy limits what is deleted with it",
			"object", o.String(), "uid", o.UID, "policy", by, "limit", most, "objects", goes)
		await.Wake(b.begun)
	}
	return held
}

// Ended is called with an object that is no longer held, or never was: it is gone, or no policy
// limits it.
func (b *Brake) Ended(uid types.UID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.roots, uid)
	delete(b.decided, uid)
}

// findRequested adds what is held of a kind. Roots that the graph does not have are gone.
func (b *Brake) findRequested(kind schema.GroupResource, f *findings) {
	b.mu.Lock()
	all := b.of(kind)
	b.mu.Unlock()
	limits := map[string]struct{}{}
	for _, r := range all {
		v, there := b.Store.Find(r.UID)
		if !there {
			b.Ended(r.UID)
			continue
		}
		limits[fmt.Sprintf("DeletionPolicy %q allows %d for each", r.by, r.most)] = struct{}{}
		f.take(graph.Inferred{Ref: v.Ref,
			Why: fmt.Sprintf("deleted by request: %s would also be deleted, and DeletionPolicy %q allows %d",
				words.Count(r.goes, "object", "objects"), r.by, r.most)}, r.counted)
	}
	texts := slices.Sorted(maps.Keys(limits))
	if len(texts) > mostLimits {
		texts = append(texts[:mostLimits], fmt.Sprintf("and %d more policies", len(limits)-mostLimits))
	}
	f.why = strings.Join(texts, "; ")
}

// mostLimits is how many policies a message names.
const mostLimits = 5

// proceed records that a person has let roots go, with as many objects as were shown.
func (q *requested) proceed(roots []item) {
	for _, r := range roots {
		if _, held := q.roots[r.uid]; held {
			q.decided[r.uid] = r.counted
		}
	}
}
