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
	// beside: another collector deletes. An object that was let through and is still there may be
	// waiting for that collector, so a hold also holds it.
	beside bool
	kinds  map[schema.GroupResource]*account
}

// NewLedger returns a Ledger. beside says that another collector deletes.
func NewLedger(l Limits, beside bool) *Ledger {
	return &Ledger{limits: l, beside: beside, kinds: map[schema.GroupResource]*account{}}
}

// Rewound records that the API server's history went back. Objects that were let through or decided
// about are not any more, even if there are objects with the same uids. Their amount still counts.
func (l *Ledger) Rewound() {
	for _, acc := range l.kinds {
		acc.forget()
		if acc.held != nil {
			clear(acc.held.decided)
		}
	}
}

// Answer says whether an object may be deleted.
type Answer uint8

// The answers.
const (
	Go    Answer = iota
	Weigh        // it depends on what goes with the object: call Charge
	Later        // after Pause
	Held
)

// Ask answers whether an object may be deleted by inference, as far as that is known without its
// weight.
func (l *Ledger) Ask(now time.Time, a graph.Action) Answer {
	if l.limits.Off() {
		return Go
	}
	acc := l.account(now, a.Inferred.Owners)
	switch weighed, decided := acc.decided(a.Object.UID); {
	case acc.lets(a.Object.UID), weighed:
		return Go
	case acc.expects(a.Object, a.Inferred):
		if l.beside { // the other collector does not say when it has; it asks again
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

// Before the first object is let through, and after every looksAround of them, there is a Pause.
// Then all others are counted that are to go for the same kind of owners. So a controller that
// writes nonsense into one object after the other has written some hundreds when the first few have
// gone. And lookups of many owners have been answered before the first object goes.
const (
	looksAround = 50
	Pause       = time.Second
)

// LooksAround reports whether Charge wants to know the others that are to go for the same kind of
// owners. What comes at once is then held at once, and not after the limit has been used up.
func (l *Ledger) LooksAround(owners schema.GroupResource) bool {
	acc := l.kinds[owners]
	return acc == nil || acc.held == nil && acc.charges%looksAround == 0
}

// Load is the weight of an object, for Charge.
type Load struct {
	Weight []graph.Counted // what goes with an object, itself included
	Others []graph.Ref     // to go for the same kind of owners, if LooksAround
	Sizes  counts          // how many objects of each kind there are
}

// Charge answers whether an object may be deleted with all that goes with it, right after Ask
// answered Weigh, and counts it if so. If that exceeds a limit, the kind of owners is held from now
// on, and began is true. If the account has ended meanwhile, the answer is Later.
func (l *Ledger) Charge(now time.Time, a graph.Action, load Load) (answer Answer, began bool) {
	acc := l.kinds[a.Inferred.Owners]
	if acc == nil {
		return Later, false
	}
	acc.turn(now)
	_, decided := acc.decided(a.Object.UID)
	switch {
	case acc.passes(a.Object, a.Inferred): // another goroutine asked about it at the same time
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

// Went counts an object that another collector has deleted by inference, without this process
// having been asked in time. why is the limit that this exceeds, for Exceeded; "" for none.
func (l *Ledger) Went(now time.Time, a graph.Action, load Load) (why string) {
	acc := l.account(now, a.Inferred.Owners)
	switch {
	case acc.held != nil: // it was let through before the hold, or a person has decided
		return ""
	case acc.lets(a.Object.UID):
		return ""
	case acc.expects(a.Object, a.Inferred):
		acc.followed(a.Object.Kind)
		return ""
	}
	why = l.exceeds(now, acc, a, load)
	acc.count(a.Object, load.Weight) // its uid is not kept: it does not come back, and their number has no bound
	return why
}

// Exceeded holds a kind of owners whose limit was exceeded. It reports false if the kind is held
// already.
func (l *Ledger) Exceeded(now time.Time, owners schema.GroupResource, why string) bool {
	acc := l.account(now, owners)
	if acc.held != nil {
		return false
	}
	l.hold(acc, now, why)
	return true
}

// exceeds returns the limit that an object would exceed; "" for none. Kinds of owners that are held
// do not count in the limit for all kinds together, so that the others go on.
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

// Gone records that an object that had been let through was deleted.
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

// Proceeds reports whether a person has let an object go.
func (l *Ledger) Proceeds(o graph.Ref, i graph.Inference) bool {
	held := l.holds(i.Owners)
	if held == nil {
		return false
	}
	_, decided := held.decided[o.UID]
	return decided
}

// Waits reports whether an object is held, and waits for a decision.
func (l *Ledger) Waits(o graph.Ref, i graph.Inference) bool {
	acc := l.kinds[i.Owners]
	return acc != nil && acc.held != nil && !l.Proceeds(o, i) && !acc.passes(o, i)
}

// Goes reports whether an object goes by a person's decision, or follows one that does.
func (l *Ledger) Goes(o graph.Ref, i graph.Inference) bool {
	acc := l.kinds[i.Owners]
	return acc != nil && acc.held != nil && (l.Proceeds(o, i) || acc.expects(o, i))
}

// Ends ends the hold of a kind of owners, whose count begins again from nothing.
func (l *Ledger) Ends(owners schema.GroupResource) { delete(l.kinds, owners) }

// Tidy drops the accounts that are idle.
func (l *Ledger) Tidy(now time.Time) {
	maps.DeleteFunc(l.kinds, func(_ schema.GroupResource, acc *account) bool { return acc.idle(now) })
}
