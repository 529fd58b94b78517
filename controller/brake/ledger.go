package brake

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
)

// window is for how long at least what was let through counts; at most for twice as long.
const window = 30 * time.Minute

// settling is how long after a start, or after the history went back, what follows from owners of all kinds is counted together, too:
// nothing was seen before, so nearly all is inferred.
const settling = 10 * time.Minute

type counts = map[schema.GroupResource]int

// Ledger counts what goes by inference. It has no clock: moments come in as arguments, and must not go back.
type Ledger struct {
	limits  Limits
	beside  bool                              // another collector deletes
	causes  map[schema.GroupResource]*account // by the kind of the owners
	common  *account                          // of all kinds, while it counts
	until   time.Time                         // when it ends
	settles string                            // from what
}

// account is what was let through for one cause.
type account struct {
	turned       time.Time
	now, before  counts // what went in this window, and in the one before
	sizes        counts // objects of a kind, most that were seen
	let, letThen map[types.UID]struct{}
	// follows is what is still to go with objects that were let through.
	follows counts
	// common is what of it counts among all kinds of owners.
	common  counts
	charges int       // how many objects were let through
	pauses  time.Time // until when no more is
	held    *hold     // nil: it goes on
}

// hold is a cause whose limit was exceeded.
type hold struct {
	since time.Time
	why   string
	// decided are objects that a person has decided to delete; true once it was asked about.
	decided map[types.UID]bool
	written bool // a HeldCollection has said so (Heed)
}

// NewLedger makes one that counts from a start.
func NewLedger(l Limits, now time.Time) *Ledger {
	led := &Ledger{limits: l, causes: map[schema.GroupResource]*account{}}
	led.Settle(now, "after the start")
	return led
}

// Beside has it count what another collector deletes: what was let through and is still there may wait for that collector, so it is held with the
// rest when something is.
func (l *Ledger) Beside() { l.beside = true }

// Settle begins to count all causes together for a while. What was let through and what was decided does not count any more for what is there then,
// be it under the same uids; but how much it was does.
func (l *Ledger) Settle(now time.Time, why string) {
	l.common, l.until, l.settles = newAccount(now), now.Add(settling), why
	for _, acc := range l.causes {
		acc.common, acc.follows = counts{}, counts{}
		acc.let, acc.letThen = map[types.UID]struct{}{}, nil
		if acc.held != nil {
			acc.held.decided = map[types.UID]bool{}
		}
	}
}

func newAccount(now time.Time) *account {
	return &account{turned: now, now: counts{}, before: counts{}, sizes: counts{}, follows: counts{}, common: counts{}, let: map[types.UID]struct{}{}}
}

// turn forgets what is too long ago.
func (a *account) turn(now time.Time) {
	if past := now.Sub(a.turned); past >= 2*window {
		*a = account{turned: now, now: counts{}, before: counts{}, sizes: counts{}, follows: a.follows, common: a.common, let: map[types.UID]struct{}{}, held: a.held}
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

// Answer is whether an object may be deleted.
type Answer uint8

// The answers.
const (
	Weigh Answer = iota // that depends on what goes with it
	Go
	Held
	Later // after Pause
)

// Ask says whether an object may be deleted by inference, as far as that is known without knowing what goes with it.
func (l *Ledger) Ask(now time.Time, a graph.Action) Answer {
	if l.limits.Off() {
		return Go
	}
	acc := l.causes[a.Inferred.Owners]
	if acc == nil {
		acc = newAccount(now)
		acc.pauses = now.Add(Pause)
		l.causes[a.Inferred.Owners] = acc
	}
	acc.turn(now)
	_, let := acc.let[a.Object.UID]
	_, letThen := acc.letThen[a.Object.UID]
	switch {
	case let, letThen:
		return Go
	case a.Inferred.Inherited && acc.follows[a.Object.Kind] > 0:
		if l.beside { // who deletes it does not say when it has; it asks again
			acc.let[a.Object.UID] = struct{}{}
			acc.followed(a.Object.Kind)
		}
		return Go
	case acc.held == nil && now.Before(acc.pauses):
		return Later
	case acc.held == nil:
		return Weigh
	}
	weighed, decided := acc.held.decided[a.Object.UID]
	switch {
	case !decided:
		return Held
	case weighed:
		return Go
	}
	return Weigh
}

// Before the first object goes, and after every looksAround of them, there is a Pause, and then all the others are counted that are to go for
// the same cause. So a controller that writes nonsense into one object after the other has written some hundreds when the first few have gone,
// and lookups of many owners have been answered before the first object goes.
const (
	looksAround = 50
	Pause       = time.Second
)

// LooksAround tells whether Charge wants to know which others are to go for the same cause: what comes at once is to be held at once, and
// not after the limit has been used up.
func (l *Ledger) LooksAround(owners schema.GroupResource) bool {
	acc := l.causes[owners]
	return acc == nil || acc.held == nil && acc.charges%looksAround == 0
}

// Load is what Charge goes by.
type Load struct {
	Weight []graph.Counted // what goes with an object, itself included
	Others []graph.Ref     // that are to go for the same cause, if they were asked for
	Sizes  map[schema.GroupResource]int
}

// Charge takes in what goes with an object of which Ask wanted to know right before, and says whether it may be deleted. A cause whose limit it exceeds
// is held from now on: held tells that this has begun. If what Ask knew has ended meanwhile, Ask has to be asked again.
func (l *Ledger) Charge(now time.Time, a graph.Action, load Load) (answer Answer, held bool) {
	acc := l.causes[a.Inferred.Owners]
	if acc == nil {
		return Later, false
	}
	acc.turn(now)
	if acc.held != nil {
		if _, decided := acc.held.decided[a.Object.UID]; !decided {
			return Held, false
		}
		acc.held.decided[a.Object.UID] = true
		acc.follow(a.Object.Kind, load.Weight)
		return Go, false
	}
	if why := l.exceeds(now, acc, a, load); why != "" {
		l.hold(acc, now, why)
		l.common.take(acc.common)
		acc.common = counts{}
		return Held, true
	}
	acc.add(load.Weight)
	if now.Before(l.until) {
		l.common.add(load.Weight)
		for _, f := range load.Weight {
			acc.common[f.Kind] += f.Count
		}
	}
	acc.let[a.Object.UID] = struct{}{}
	if acc.charges++; acc.charges%looksAround == 0 {
		acc.pauses = now.Add(Pause)
	}
	acc.follow(a.Object.Kind, load.Weight)
	return Go, false
}

// exceeds says which limit there is in the way; "" for none.
func (l *Ledger) exceeds(now time.Time, acc *account, a graph.Action, load Load) string {
	for k, n := range load.Sizes {
		acc.sizes[k] = max(acc.sizes[k], n)
		l.common.sizes[k] = max(l.common.sizes[k], n)
	}
	weight := load.Weight
	for _, o := range load.Others {
		_, let := acc.let[o.UID]
		_, letThen := acc.letThen[o.UID]
		if !let && !letThen && o.UID != a.Object.UID {
			weight = append(weight, graph.Counted{Kind: o.Kind, Count: 1})
		}
	}
	if why := l.limits.exceeded(acc.with(weight), acc.sizes); why != "" {
		return why
	}
	if now.Before(l.until) {
		if why := l.limits.exceeded(l.common.with(weight), l.common.sizes); why != "" {
			return why + ", for owners of all kinds " + l.settles
		}
	}
	return ""
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

// Gone takes in that an object was deleted that had been let through.
func (l *Ledger) Gone(a graph.Action) {
	if acc := l.causes[a.Inferred.Owners]; acc != nil && a.Inferred.Inherited {
		acc.followed(a.Object.Kind)
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

func (l *Ledger) hold(a *account, since time.Time, why string) {
	a.held = &hold{since: since, why: why, decided: map[types.UID]bool{}}
	if l.beside {
		a.let, a.letThen, a.follows = map[types.UID]struct{}{}, nil, counts{}
	}
}

// Hold holds a cause that was held before the process began.
func (l *Ledger) Hold(now time.Time, owners schema.GroupResource, since time.Time, why string) {
	acc := newAccount(now)
	l.hold(acc, since, why)
	l.causes[owners] = acc
}

// Decided lets objects go that are held.
func (l *Ledger) Decided(owners schema.GroupResource, uids []types.UID) {
	acc := l.causes[owners]
	if acc == nil || acc.held == nil {
		return
	}
	for _, uid := range uids {
		if _, already := acc.held.decided[uid]; !already {
			acc.held.decided[uid] = false
		}
	}
}

// Proceeds tells whether a person has decided that an object goes.
func (l *Ledger) Proceeds(owners schema.GroupResource, uid types.UID) bool {
	acc := l.causes[owners]
	if acc == nil || acc.held == nil {
		return false
	}
	_, decided := acc.held.decided[uid]
	return decided
}

// Waits tells whether an object is held, and waits for a decision.
func (l *Ledger) Waits(i graph.Inference, o graph.Ref) bool {
	acc := l.causes[i.Owners]
	if acc == nil || acc.held == nil {
		return false
	}
	_, decided := acc.held.decided[o.UID]
	_, let := acc.let[o.UID]
	_, letThen := acc.letThen[o.UID]
	return !decided && !let && !letThen && (!i.Inherited || acc.follows[o.Kind] <= 0)
}

// Goes tells whether an object goes because a person has decided so, or follows one that does, and is still there.
func (l *Ledger) Goes(i graph.Inference, o graph.Ref) bool {
	acc := l.causes[i.Owners]
	if acc == nil || acc.held == nil {
		return false
	}
	_, decided := acc.held.decided[o.UID]
	return decided || i.Inherited && acc.follows[o.Kind] > 0
}

// Ends ends a hold: nothing is held by it any more. What it was about is counted again from nothing.
func (l *Ledger) Ends(owners schema.GroupResource) { delete(l.causes, owners) }

// Tidy forgets causes of which nothing was heard for long.
func (l *Ledger) Tidy(now time.Time) {
	for owners, acc := range l.causes {
		if acc.held == nil && now.Sub(acc.turned) >= 4*window {
			delete(l.causes, owners)
		}
	}
}
