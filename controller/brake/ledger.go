package brake

import (
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
)

// Ledger counts deletes by inference, by the kind of the owners. It has no clock: times are
// arguments, and must not go back.
type Ledger struct {
	limits Limits
	kinds  map[schema.GroupResource]*account
}

// NewLedger returns a Ledger in which nothing is counted yet.
func NewLedger(l Limits) *Ledger { return &Ledger{l, map[schema.GroupResource]*account{}} }

// Rewound records that the API server's history went back. Objects that were let through or decided
// about are not any more, even if there are objects with the same uids. Their amount still counts.
func (l *Ledger) Rewound() {
	for _, acc := range l.kinds {
		clear(acc.follows)
		for i := range acc.past {
			clear(acc.past[i].let)
		}
		clear(acc.decided)
	}
}

// Answer says whether an object may be deleted.
type Answer uint8

// The answers.
const (
	Go    Answer = iota
	Later        // after Pause
	Held
)

// Before the first object is let through, and after every looksAround of them, there is a Pause.
// Then all others are counted that are to go for the same kind of owners. So a controller that
// writes nonsense into one object after the other has written some hundreds when the first few have
// gone, and all of it is held. And lookups of many owners have been answered before the first
// object goes.
const (
	looksAround = 50
	Pause       = time.Second
)

// Load is what would go with an object.
type Load struct {
	Weight []graph.Counted // what goes with it, itself included
	Others []graph.Ref     // what is to go for the same kind of owners, if that was asked for
	Sizes  counts          // how many objects of each kind there are
}

// Ask answers whether an object may be deleted by inference, and counts it if so. weigh is called
// where that depends on what goes with the object; around asks for the Others, too. If a limit
// would be exceeded, the kind of owners is held from now on, and began is true.
func (l *Ledger) Ask(now time.Time, a graph.Action, weigh func(around bool) Load) (answer Answer, began bool) {
	if l.limits.Off() {
		return Go, false
	}
	acc, o := l.account(now, a.Inferred.Owners), a.Object
	weighed, decided := acc.decided[o.UID]
	switch {
	case weighed, acc.lets(o.UID), acc.expects(o, a.Inferred):
		return Go, false
	case decided:
		acc.decided[o.UID] = true
		acc.follow(o.Kind, weigh(false).Weight)
		return Go, false
	case acc.held != nil:
		return Held, false
	case now.Before(acc.pauses):
		return Later, false
	}
	load := weigh(acc.charges%looksAround == 0)
	if why := l.exceeds(now, acc, o, load); why != "" {
		acc.held = &hold{now, why}
		return Held, true
	}
	acc.letThrough(now, o, load.Weight)
	return Go, false
}

// account returns the account of a kind of owners, up to date.
func (l *Ledger) account(now time.Time, owners schema.GroupResource) *account {
	acc := l.kinds[owners]
	if acc == nil || acc.idle(now) {
		acc = newAccount(now)
		l.kinds[owners] = acc
	}
	acc.turn(now)
	return acc
}

// exceeds returns the limit that an object would exceed; "" for none. Kinds of owners that are held
// do not count in the limit for all kinds together, so that the others go on.
func (l *Ledger) exceeds(now time.Time, acc *account, o graph.Ref, load Load) string {
	for k, n := range load.Sizes {
		acc.sizes[k] = max(acc.sizes[k], n)
	}
	more := acc.comesTo(o, load)
	sum, sizes := maps.Clone(more), counts{}
	acc.addTo(sum, sizes, spans)
	if why := l.limits.exceeded(sum, sizes); why != "" {
		return why
	}
	for _, of := range l.kinds {
		if of.held == nil {
			of.turn(now)
			of.addTo(more, sizes, recent)
		}
	}
	if why := l.limits.exceeded(more, sizes); why != "" {
		return why + ", for owners of all kinds within ten minutes"
	}
	return ""
}

// Gone records that an object that had been let through was deleted.
func (l *Ledger) Gone(a graph.Action) {
	acc := l.kinds[a.Inferred.Owners]
	if acc == nil || !a.Inferred.Inherited {
		return
	}
	if acc.follows[a.Object.Kind]--; acc.follows[a.Object.Kind] <= 0 {
		delete(acc.follows, a.Object.Kind)
	}
}

// holds returns the hold of a kind of owners; nil if there is none.
func (l *Ledger) holds(owners schema.GroupResource) *hold {
	if acc := l.kinds[owners]; acc != nil {
		return acc.held
	}
	return nil
}

// Hold holds a kind of owners that a HeldCollection says is held.
func (l *Ledger) Hold(now time.Time, owners schema.GroupResource, since time.Time, why string) {
	acc := newAccount(now)
	acc.held = &hold{since, why}
	l.kinds[owners] = acc
}

// Decided lets objects go that are held.
func (l *Ledger) Decided(owners schema.GroupResource, uids []types.UID) {
	if l.holds(owners) == nil {
		return
	}
	decided := l.kinds[owners].decided
	for _, uid := range uids {
		if _, already := decided[uid]; !already {
			decided[uid] = false
		}
	}
}

// Stands says what an object of a kind of owners that is held waits for: a person's decision, or to
// be deleted by one, with what it depends on. Neither is true if it was let through before.
func (l *Ledger) Stands(o graph.Ref, i graph.Inference) (waits, goes bool) {
	acc := l.kinds[i.Owners]
	if acc == nil || acc.held == nil {
		return false, false
	}
	_, goes = acc.decided[o.UID]
	goes = goes || acc.expects(o, i)
	return !goes && !acc.lets(o.UID), goes
}

// Ends ends the hold of a kind of owners, whose count begins again from nothing.
func (l *Ledger) Ends(owners schema.GroupResource) { delete(l.kinds, owners) }

// Tidy drops the accounts that are idle.
func (l *Ledger) Tidy(now time.Time) {
	maps.DeleteFunc(l.kinds, func(_ schema.GroupResource, acc *account) bool { return acc.idle(now) })
}

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
	began   time.Time      // when the newest span began
	past    [spans]passage // the newest first
	sizes   counts         // the most objects of each kind that were seen
	follows counts         // the dependents, still there, of objects that were let through
	charges int            // how many objects were let through
	pauses  time.Time      // no more are let through until then
	held    *hold          // nil: the kind is not held
	// decided is what a person has let go since it is held; true once it was weighed.
	decided map[types.UID]bool
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
}

func newAccount(now time.Time) *account {
	a := &account{began: now, pauses: now.Add(Pause), sizes: counts{}, follows: counts{}, decided: map[types.UID]bool{}}
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

// letThrough counts an object, and what goes with it. After each looksAround of them it begins a
// Pause.
func (a *account) letThrough(now time.Time, o graph.Ref, weight []graph.Counted) {
	a.past[0].let[o.UID] = struct{}{}
	if a.charges++; a.charges%looksAround == 0 {
		a.pauses = now.Add(Pause)
	}
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
	add(a.follows, weight)
	a.follows[kind] = max(0, a.follows[kind]-1) // without the object itself
}
