package brake

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
)

// account is what was let through for one cause.
type account struct {
	turned       time.Time
	now, before  counts // what went in this window, and in the one before
	sizes        counts // objects of a kind, most that were seen
	let, letThen map[types.UID]struct{}
	// follows is what is still to go with objects that were let through.
	follows counts
	charges int       // how many objects were let through
	pauses  time.Time // until when no more is
	held    *hold     // nil: it goes on
}

// hold is a cause whose limit was exceeded.
type hold struct {
	since time.Time
	why   string
	// decided are objects that a person has let through; true once it was asked about.
	decided map[types.UID]bool
	written bool      // a HeldCollection has said so (Heed)
	missing time.Time // since when none does; zero: one does
}

func newAccount(now time.Time) *account {
	return &account{turned: now, now: counts{}, before: counts{}, sizes: counts{}, follows: counts{}, let: map[types.UID]struct{}{}}
}

// turn forgets what is too long ago. After a long time it begins with a pause, as a new account
// does.
func (a *account) turn(now time.Time) {
	if past := now.Sub(a.turned); past >= 2*window {
		*a = account{turned: now, pauses: now.Add(Pause), now: counts{}, before: counts{}, sizes: counts{}, follows: a.follows, let: map[types.UID]struct{}{}, held: a.held}
	} else if past >= window {
		a.turned, a.before, a.letThen = a.turned.Add(window), a.now, a.let
		a.now, a.let = counts{}, map[types.UID]struct{}{}
	}
}

// with is what an account comes to with more.
func (a *account) with(weight []graph.Counted) counts {
	sum := counts{}
	for _, c := range []counts{a.now, a.before} {
		for k, n := range c {
			sum[k] += n
		}
	}
	for _, f := range weight {
		sum[f.Kind] += f.Count
	}
	return sum
}

func (a *account) add(weight []graph.Counted) {
	for _, f := range weight {
		a.now[f.Kind] += f.Count
	}
}

// take has an account forget what another has taken over.
func (a *account) take(c counts) {
	for k, n := range c {
		a.now[k] -= n
	}
}

// lets tells whether an object was let through.
func (a *account) lets(uid types.UID) bool {
	_, let := a.let[uid]
	_, letThen := a.letThen[uid]
	return let || letThen
}

// passes tells whether an object was let through, or follows one that was.
func (a *account) passes(o graph.Ref, i graph.Inference) bool {
	return a.lets(o.UID) || i.Inherited && a.follows[o.Kind] > 0
}

// weighed takes in that what goes with an object that a person has let through is expected.
func (a *account) weighed(uid types.UID) {
	if a.held == nil {
		return
	}
	if _, decided := a.held.decided[uid]; decided {
		a.held.decided[uid] = true
	}
}

// letThrough notes that an object is, after some of which all others wait for a moment.
func (a *account) letThrough(now time.Time, uid types.UID) {
	a.let[uid] = struct{}{}
	if a.charges++; a.charges%looksAround == 0 {
		a.pauses = now.Add(Pause)
	}
}

// weigh is what goes with an object, and with the others that are to go for a cause.
func (a *account) weigh(of graph.Action, load Load, cause graph.Cause) []graph.Counted {
	weight := slices.Clone(load.Weight)
	for _, o := range load.Others[cause] {
		if !a.lets(o.UID) && o.UID != of.Object.UID {
			weight = append(weight, graph.Counted{Kind: o.Kind, Count: 1})
		}
	}
	return weight
}

// follow expects what goes with an object of a kind.
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

// followed takes in that one of those went that follow.
func (a *account) followed(kind schema.GroupResource) {
	if n := a.follows[kind]; n > 1 {
		a.follows[kind] = n - 1
	} else {
		delete(a.follows, kind)
	}
}
