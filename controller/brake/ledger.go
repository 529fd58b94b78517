package brake

import (
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
)

// Ledger counts what goes by inference, by the kind of the owners. It has no clock: moments come in
// as arguments, and must not go back.
type Ledger struct {
	limits Limits
	// beside: another collector deletes. What was let through and is still there may wait for that
	// collector, so it is held with the rest when something is.
	beside bool
	kinds  map[schema.GroupResource]*account
}

// NewLedger makes one, which counts what another collector deletes if that is beside.
func NewLedger(l Limits, beside bool) *Ledger {
	return &Ledger{limits: l, beside: beside, kinds: map[schema.GroupResource]*account{}}
}

// Rewound takes in that the API server's history went back: what was let through and what was
// decided does not count any more for what is there then, be it under the same uids. How much it
// was does.
func (l *Ledger) Rewound() {
	for _, acc := range l.kinds {
		acc.forget()
		if acc.held != nil {
			clear(acc.held.decided)
		}
	}
}

// Answer is whether an object may be deleted.
type Answer uint8

// The answers.
const (
	Go    Answer = iota
	Weigh        // that depends on what goes with it
	Later        // after Pause
	Held
)

// Ask says whether an object may be deleted by inference, as far as that is known without knowing
// what goes with it.
func (l *Ledger) Ask(now time.Time, a graph.Action) Answer {
	if l.limits.Off() {
		return Go
	}
	acc := l.account(now, a.Inferred.Owners)
	switch weighed, decided := acc.decided(a.Object.UID); {
	case acc.lets(a.Object.UID), weighed:
		return Go
	case acc.expects(a.Object, a.Inferred):
		if l.beside { // who deletes it does not say when it has; it asks again
			acc.past[0].let[a.Object.UID] = struct{}{}
			acc.followed(a.Object.Kind)
		}
		return Go
	case decided:
		return Weigh
	case acc.held != nil:
		return Held
	case now.Before(acc.pauses):
		return Later
	}
	return Weigh
}

// account is that of a kind of owners, as it is now.
func (l *Ledger) account(now time.Time, owners schema.GroupResource) *account {
	acc := l.kinds[owners]
	if acc == nil || acc.idle(now) {
		acc = newAccount(now)
		l.kinds[owners] = acc
	}
	acc.turn(now)
	return acc
}

// Before the first object goes, and after every looksAround of them, there is a Pause, and then all
// the others are counted that are to go for the same kind of owners. So a controller that writes
// nonsense into one object after the other has written some hundreds when the first few have gone,
// and lookups of many owners have been answered before the first object goes.
const (
	looksAround = 50
	Pause       = time.Second
)

// LooksAround tells whether Charge wants to know which others are to go for the same kind of
// owners: what comes at once is to be held at once, and not after the limit has been used up.
func (l *Ledger) LooksAround(owners schema.GroupResource) bool {
	acc := l.kinds[owners]
	return acc == nil || acc.held == nil && acc.charges%looksAround == 0
}

// Load is what Charge goes by.
type Load struct {
	Weight []graph.Counted // what goes with an object, itself included
	Others []graph.Ref     // that are to go for the same kind of owners, if they were looked for
	Sizes  counts          // how many objects of a kind there are
}

// Charge takes in what goes with an object of which Ask wanted to know right before, and says
// whether it may be deleted. A kind of owners whose limit it exceeds is held from now on: began. If
// what Ask knew has ended meanwhile, Ask has to be asked again.
func (l *Ledger) Charge(now time.Time, a graph.Action, load Load) (answer Answer, began bool) {
	acc := l.kinds[a.Inferred.Owners]
	if acc == nil {
		return Later, false
	}
	acc.turn(now)
	_, decided := acc.decided(a.Object.UID)
	switch {
	case acc.passes(a.Object, a.Inferred): // another asked about it at the same time
		return Go, false
	case decided:
		acc.held.decided[a.Object.UID] = true
		acc.follow(a.Object.Kind, load.Weight)
		return Go, false
	case acc.held != nil:
		return Held, false
	}
	if why := l.exceeds(now, acc, a, load); why != "" {
		return Held, l.Exceeded(now, a.Inferred.Owners, why)
	}
	acc.letThrough(now, a.Object.UID)
	acc.count(a.Object, load.Weight)
	return Go, false
}

// Went takes in that another collector has deleted an object by inference: this process may not
// have been asked, or not in time. why says which limit that exceeds, for Exceeded; "" for none.
func (l *Ledger) Went(now time.Time, a graph.Action, load Load) (why string) {
	acc := l.account(now, a.Inferred.Owners)
	switch {
	case acc.held != nil: // it was let through before, or a person has decided
		return ""
	case acc.lets(a.Object.UID):
		return ""
	case acc.expects(a.Object, a.Inferred):
		acc.followed(a.Object.Kind)
		return ""
	}
	why = l.exceeds(now, acc, a, load)
	acc.count(a.Object, load.Weight) // its uid is not kept: it does not come back, and nothing bounds how many go
	return why
}

// Exceeded holds a kind of owners whose limit was exceeded. False: it is held already.
func (l *Ledger) Exceeded(now time.Time, owners schema.GroupResource, why string) bool {
	acc := l.account(now, owners)
	if acc.held != nil {
		return false
	}
	l.hold(acc, now, why)
	return true
}

// exceeds says which limit there is in the way; "" for none. What is held does not count for all
// kinds together: the others go on.
func (l *Ledger) exceeds(now time.Time, acc *account, a graph.Action, load Load) string {
	for k, n := range load.Sizes {
		acc.sizes[k] = max(acc.sizes[k], n)
	}
	more := acc.comesTo(a.Object, load)
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

// Gone takes in that an object was deleted that had been let through.
func (l *Ledger) Gone(a graph.Action) {
	if acc := l.kinds[a.Inferred.Owners]; acc != nil && a.Inferred.Inherited {
		acc.followed(a.Object.Kind)
	}
}

func (l *Ledger) hold(a *account, since time.Time, why string) {
	a.held = &hold{since: since, why: why, decided: map[types.UID]bool{}}
	if l.beside {
		a.forget()
	}
}

// holds is what is held for a kind of owners; nil if nothing is.
func (l *Ledger) holds(owners schema.GroupResource) *hold {
	if acc := l.kinds[owners]; acc != nil {
		return acc.held
	}
	return nil
}

// Hold holds a kind of owners that was held before the process began.
func (l *Ledger) Hold(now time.Time, owners schema.GroupResource, since time.Time, why string) {
	acc := newAccount(now)
	l.hold(acc, since, why)
	l.kinds[owners] = acc
}

// Decided lets objects go that are held.
func (l *Ledger) Decided(owners schema.GroupResource, uids []types.UID) {
	held := l.holds(owners)
	if held == nil {
		return
	}
	for _, uid := range uids {
		if _, already := held.decided[uid]; !already {
			held.decided[uid] = false
		}
	}
}

// Proceeds tells whether a person has decided that an object goes.
func (l *Ledger) Proceeds(o graph.Ref, i graph.Inference) bool {
	held := l.holds(i.Owners)
	if held == nil {
		return false
	}
	_, decided := held.decided[o.UID]
	return decided
}

// Waits tells whether an object is held, and waits for a decision.
func (l *Ledger) Waits(o graph.Ref, i graph.Inference) bool {
	acc := l.kinds[i.Owners]
	return acc != nil && acc.held != nil && !l.Proceeds(o, i) && !acc.passes(o, i)
}

// Goes tells whether an object goes because a person has decided so, or follows one that does, and
// is still there.
func (l *Ledger) Goes(o graph.Ref, i graph.Inference) bool {
	acc := l.kinds[i.Owners]
	return acc != nil && acc.held != nil && (l.Proceeds(o, i) || acc.expects(o, i))
}

// Ends ends a hold: nothing is held by it any more. What it was about is counted again from
// nothing.
func (l *Ledger) Ends(owners schema.GroupResource) { delete(l.kinds, owners) }

// Tidy forgets kinds of owners of which nothing was heard for long.
func (l *Ledger) Tidy(now time.Time) {
	maps.DeleteFunc(l.kinds, func(_ schema.GroupResource, acc *account) bool { return acc.idle(now) })
}
