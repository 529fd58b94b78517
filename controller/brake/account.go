package brake

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
)

type counts = map[schema.GroupResource]int

// Objects that were let through count for an hour against the limit of their kind of owners, and
// for ten minutes against that of all kinds together. They are kept in spans of time, so it is at
// least an hour less a span.
const (
	span   = 10 * time.Minute
	spans  = 6
	recent = 2 // spans; the newest has just begun
	window = (spans - 1) * span
)

// account counts what was let through for owners of one kind.
type account struct {
	began time.Time      // when the newest span began
	past  [spans]passage // the newest first
	sizes counts         // the most objects of each kind that were seen
	// follows counts the dependents, still there, of objects that were let through.
	follows counts
	charges int       // how many objects were let through
	pauses  time.Time // no more are let through until then
	held    *hold     // nil: the kind is not held
}

// passage is what was let through within one span.
type passage struct {
	weight counts
	let    map[types.UID]struct{}
}

func newPassage() passage { return passage{counts{}, map[types.UID]struct{}{}} }

// hold is the hold of a kind of owners whose limit was exceeded.
type hold struct {
	since time.Time
	why   string
	// decided holds the objects that a person has let go; true once one was weighed.
	decided map[types.UID]bool
	written bool      // a HeldCollection was seen that says so (Heed)
	missing time.Time // since when there is none; zero: there is one
}

func newAccount(now time.Time) *account {
	a := &account{began: now, pauses: now.Add(Pause), sizes: counts{}, follows: counts{}}
	for i := range a.past {
		a.past[i] = newPassage()
	}
	return a
}

// turn drops the spans that are too long ago.
func (a *account) turn(now time.Time) {
	for ; now.Sub(a.began) >= span; a.began = a.began.Add(span) {
		copy(a.past[1:], a.past[:])
		a.past[0] = newPassage()
	}
}

// idle reports whether an account says nothing any more.
func (a *account) idle(now time.Time) bool { return a.held == nil && now.Sub(a.began) >= spans*span }

// lets reports whether an object was let through.
func (a *account) lets(uid types.UID) bool {
	for i := range a.past {
		if _, let := a.past[i].let[uid]; let {
			return true
		}
	}
	return false
}

// expects reports whether an object follows one that was let through.
func (a *account) expects(o graph.Ref, i graph.Inference) bool {
	return i.Inherited && a.follows[o.Kind] > 0
}

// passes reports whether an object was let through, or follows one that was.
func (a *account) passes(o graph.Ref, i graph.Inference) bool {
	return a.lets(o.UID) || a.expects(o, i)
}

// letThrough records that an object was let through. After each looksAround of them it begins a
// Pause.
func (a *account) letThrough(now time.Time, uid types.UID) {
	a.past[0].let[uid] = struct{}{}
	if a.charges++; a.charges%looksAround == 0 {
		a.pauses = now.Add(Pause)
	}
}

// count adds what goes with an object.
func (a *account) count(o graph.Ref, weight []graph.Counted) {
	add(a.past[0].weight, weight)
	a.follow(o.Kind, weight)
}

func add(to counts, weight []graph.Counted) {
	for _, f := range weight {
		to[f.Kind] += f.Count
	}
}

// comesTo returns what goes with an object, and with all others that load has for the same kind of
// owners.
func (a *account) comesTo(o graph.Ref, load Load) counts {
	sum := counts{}
	add(sum, load.Weight)
	for _, other := range load.Others {
		if !a.lets(other.UID) && other.UID != o.UID {
			sum[other.Kind]++
		}
	}
	return sum
}

// addTo adds what was let through within the newest spans to sum, and the sizes of kinds to sizes.
func (a *account) addTo(sum, sizes counts, newest int) {
	for _, p := range a.past[:newest] {
		for k, n := range p.weight {
			sum[k] += n
		}
	}
	for k, n := range a.sizes {
		sizes[k] = max(sizes[k], n)
	}
}

// follow adds the dependents that go with an object of a kind to follows.
func (a *account) follow(kind schema.GroupResource, weight []graph.Counted) {
	for _, f := range weight {
		n := f.Count
		if f.Kind == kind {
			n--
		}
		if n > 0 {
			a.follows[f.Kind] += n
		}
	}
}

// followed removes one object from follows.
func (a *account) followed(kind schema.GroupResource) {
	if n := a.follows[kind]; n > 1 {
		a.follows[kind] = n - 1
	} else {
		delete(a.follows, kind)
	}
}

// forget voids what was let through, with all that follows it. Its amount still counts.
func (a *account) forget() {
	clear(a.follows)
	for i := range a.past {
		clear(a.past[i].let)
	}
}

// decided reports whether a person has let an object go, and whether it was weighed since.
func (a *account) decided(uid types.UID) (weighed, decided bool) {
	if a.held == nil {
		return false, false
	}
	weighed, decided = a.held.decided[uid]
	return weighed, decided
}
