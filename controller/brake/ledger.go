package brake

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
)

// window is for how long at least what was let through counts; at most for twice as long.
const window = 30 * time.Minute

// settling is how long after a start, or after the history went back, what follows from owners of
// all kinds is counted together, too: nothing was seen before, so nearly all is inferred.
const settling = 10 * time.Minute

type counts = map[schema.GroupResource]int

// Ledger counts what goes by inference. It has no clock: moments come in as arguments, and must not
// go back.
type Ledger struct {
	limits  Limits
	beside  bool                     // another collector deletes
	causes  map[graph.Cause]*account // by the kind of the owners, and by who edited references
	common  *account                 // of all kinds, while it counts
	shares  map[graph.Cause]counts   // what of it is of a kind of owners and a writer
	until   time.Time                // when it ends
	settles string                   // from what
}

// NewLedger makes one that counts from a start.
func NewLedger(l Limits, now time.Time) *Ledger {
	led := &Ledger{limits: l, causes: map[graph.Cause]*account{}}
	led.Settle(now, "after the start")
	return led
}

// Beside has it count what another collector deletes: what was let through and is still there may
// wait for that collector, so it is held with the rest when something is.
func (l *Ledger) Beside() { l.beside = true }

// Settle begins to count all causes together for a while. What was let through and what was decided
// does not count any more for what is there then, be it under the same uids; but how much it was
// does.
func (l *Ledger) Settle(now time.Time, why string) {
	l.common, l.shares, l.until, l.settles = newAccount(now), map[graph.Cause]counts{}, now.Add(settling), why
	for _, acc := range l.causes {
		acc.follows = counts{}
		acc.let, acc.letThen = map[types.UID]struct{}{}, nil
		if acc.held != nil {
			acc.held.decided = map[types.UID]bool{}
		}
	}
}

// Answer is whether an object may be deleted.
type Answer uint8

// The answers. Of several causes that counts which comes last here.
const (
	Go    Answer = iota
	Weigh        // that depends on what goes with it
	Later        // after Pause
	Held
)

// Ask says whether an object may be deleted by inference, as far as that is known without knowing
// what goes with it. It may if all causes let it go, or if a person has decided so, by whichever of
// them.
func (l *Ledger) Ask(now time.Time, a graph.Action) Answer {
	if l.limits.Off() {
		return Go
	}
	var answer Answer
	weighed, decided := l.decided(a)
	for _, c := range a.Inferred.Causes() {
		answer = max(answer, l.ask(now, l.account(now, c), a))
	}
	switch {
	case !decided || answer == Go:
		return answer
	case weighed:
		return Go
	}
	return Weigh
}

// account is that of a cause, as it is now.
func (l *Ledger) account(now time.Time, c graph.Cause) *account {
	acc := l.causes[c]
	if acc == nil {
		acc = newAccount(now)
		acc.pauses = now.Add(Pause)
		l.causes[c] = acc
	}
	acc.turn(now)
	return acc
}

// ask is what one cause says.
func (l *Ledger) ask(now time.Time, acc *account, a graph.Action) Answer {
	switch {
	case acc.lets(a.Object.UID):
		return Go
	case a.Inferred.Inherited && acc.follows[a.Object.Kind] > 0:
		if l.beside { // who deletes it does not say when it has; it asks again
			acc.let[a.Object.UID] = struct{}{}
			acc.followed(a.Object.Kind)
		}
		return Go
	case acc.held != nil:
		return Held
	case now.Before(acc.pauses):
		return Later
	}
	return Weigh
}

// decided tells whether a person has let an object go, and whether it was weighed since.
func (l *Ledger) decided(a graph.Action) (weighed, decided bool) {
	for _, c := range a.Inferred.Causes() {
		if acc := l.causes[c]; acc != nil && acc.held != nil {
			before, is := acc.held.decided[a.Object.UID]
			weighed, decided = weighed || before, decided || is
		}
	}
	return weighed, decided
}

// Before the first object goes, and after every looksAround of them, there is a Pause, and then all
// the others are counted that are to go for the same cause. So a controller that writes nonsense
// into one object after the other has written some hundreds when the first few have gone, and
// lookups of many owners have been answered before the first object goes.
const (
	looksAround = 50
	Pause       = time.Second
)

// LooksAround tells for which causes Charge wants to know which others are to go for the same: what
// comes at once is to be held at once, and not after the limit has been used up.
func (l *Ledger) LooksAround(i graph.Inference) []graph.Cause {
	return slices.DeleteFunc(i.Causes(), func(c graph.Cause) bool {
		acc := l.causes[c]
		return acc != nil && (acc.held != nil || acc.charges%looksAround != 0)
	})
}

// Load is what Charge goes by.
type Load struct {
	Weight []graph.Counted             // what goes with an object, itself included
	Others map[graph.Cause][]graph.Ref // that are to go for the same cause, if they were asked for
	Sizes  map[schema.GroupResource]int
}

// Charge takes in what goes with an object of which Ask wanted to know right before, and says
// whether it may be deleted. A cause whose limit it exceeds is held from now on: held is that which
// has begun to be. If what Ask knew has ended meanwhile, Ask has to be asked again.
func (l *Ledger) Charge(now time.Time, a graph.Action, load Load) (answer Answer, held *graph.Cause) {
	var all, accounts []*account // of all causes, and of those that do not let it go yet: the others have counted it
	var causes []graph.Cause
	holds := false
	for _, c := range a.Inferred.Causes() {
		acc := l.causes[c]
		if acc == nil {
			return Later, nil
		}
		acc.turn(now)
		all = append(all, acc)
		if acc.passes(a.Object, a.Inferred) {
			continue
		}
		causes, accounts = append(causes, c), append(accounts, acc)
		holds = holds || acc.held != nil
	}
	if len(accounts) == 0 {
		return Go, nil // another asked about it at the same time
	}
	if _, decided := l.decided(a); holds && !decided {
		return Held, nil
	} else if holds {
		for _, acc := range all {
			acc.weighed(a.Object.UID)
		}
		all[0].follow(a.Object.Kind, load.Weight)
		return Go, nil
	}
	if at, why := l.exceeds(now, accounts, causes, a, load); why != "" {
		l.Exceeded(now, causes[at], why)
		return Held, &causes[at]
	}
	for _, acc := range accounts {
		acc.letThrough(now, a.Object.UID)
	}
	l.count(now, a, load, all, accounts)
	return Go, nil
}

// Went takes in that another collector has deleted an object by inference: this process may not
// have been asked, or not in time. over is a cause whose limit that exceeds, for Exceeded; nil if
// there is none.
func (l *Ledger) Went(now time.Time, a graph.Action, load Load) (over *graph.Cause, why string) {
	var all, accounts []*account
	var causes []graph.Cause
	for _, c := range a.Inferred.Causes() {
		acc := l.account(now, c)
		switch all = append(all, acc); {
		case acc.held != nil: // it was let through before, or a person has decided
			return nil, ""
		case acc.lets(a.Object.UID):
		case a.Inferred.Inherited && acc.follows[a.Object.Kind] > 0:
			acc.followed(a.Object.Kind)
		default:
			causes, accounts = append(causes, c), append(accounts, acc)
		}
	}
	if len(accounts) == 0 {
		return nil, ""
	}
	at, why := l.exceeds(now, accounts, causes, a, load)
	l.count(now, a, load, all, accounts) // its uid is not kept: it does not come back, and nothing bounds how many go
	if why == "" {
		return nil, ""
	}
	return &causes[at], why
}

// Exceeded holds a cause whose limit was exceeded, with what was let through for it and is still
// there. False: it is held already.
func (l *Ledger) Exceeded(now time.Time, c graph.Cause, why string) bool {
	acc := l.account(now, c)
	if acc.held != nil {
		return false
	}
	l.hold(acc, now, why)
	l.takeShares(c)
	return true
}

// count takes in what goes with an object, for accounts that have not counted it. all are those of
// its causes.
func (l *Ledger) count(now time.Time, a graph.Action, load Load, all, accounts []*account) {
	for _, acc := range accounts {
		acc.add(load.Weight)
	}
	if accounts[0] != all[0] {
		return // what goes with it was counted when it was counted for its owners
	}
	if now.Before(l.until) {
		l.common.add(load.Weight)
		of := graph.Cause{Owners: a.Inferred.Owners, Writer: a.Inferred.Writer}
		if l.shares[of] == nil {
			l.shares[of] = counts{}
		}
		for _, f := range load.Weight {
			l.shares[of][f.Kind] += f.Count
		}
	}
	all[0].follow(a.Object.Kind, load.Weight)
}

// exceeds says which limit there is in the way, and of which of the causes; "" for none. That of
// all kinds of owners comes last: who edited references says more.
func (l *Ledger) exceeds(now time.Time, accounts []*account, causes []graph.Cause, a graph.Action, load Load) (at int, why string) {
	for at, acc := range accounts {
		for k, n := range load.Sizes {
			acc.sizes[k] = max(acc.sizes[k], n)
			l.common.sizes[k] = max(l.common.sizes[k], n)
		}
		if why := l.limits.exceeded(acc.with(acc.weigh(a, load, causes[at])), acc.sizes); why != "" {
			return at, why
		}
	}
	// Of all kinds it is counted when it is for its owners, whose cause is the first: once.
	if now.Before(l.until) && causes[0].Writer == "" {
		if why := l.limits.exceeded(l.common.with(accounts[0].weigh(a, load, causes[0])), l.common.sizes); why != "" {
			return 0, why + ", for owners of all kinds " + l.settles
		}
	}
	return 0, ""
}

// takeShares has what is counted for all kinds together forget what a cause that is held now has
// come to: all others go on.
func (l *Ledger) takeShares(held graph.Cause) {
	for of, share := range l.shares {
		if of.Writer == held.Writer && held.Writer != "" || of.Owners == held.Owners && held.Writer == "" {
			l.common.take(share)
			delete(l.shares, of)
		}
	}
}

// writersHeld are those for whose edits something is held.
func (l *Ledger) writersHeld() map[string]bool {
	held := map[string]bool{}
	for c, acc := range l.causes {
		if c.Writer != "" && acc.held != nil {
			held[c.Writer] = true
		}
	}
	return held
}

// Gone takes in that an object was deleted that had been let through.
func (l *Ledger) Gone(a graph.Action) {
	if acc := l.causes[graph.Cause{Owners: a.Inferred.Owners}]; acc != nil && a.Inferred.Inherited {
		acc.followed(a.Object.Kind)
	}
}

func (l *Ledger) hold(a *account, since time.Time, why string) {
	a.held = &hold{since: since, why: why, decided: map[types.UID]bool{}}
	if l.beside {
		a.let, a.letThen, a.follows = map[types.UID]struct{}{}, nil, counts{}
	}
}

// holds tells whether a cause is held.
func (l *Ledger) holds(c graph.Cause) bool {
	acc := l.causes[c]
	return acc != nil && acc.held != nil
}

// Hold holds a cause that was held before the process began.
func (l *Ledger) Hold(now time.Time, c graph.Cause, since time.Time, why string) {
	acc := newAccount(now)
	l.hold(acc, since, why)
	l.causes[c] = acc
}

// Decided lets objects go that are held.
func (l *Ledger) Decided(c graph.Cause, uids []types.UID) {
	acc := l.causes[c]
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
func (l *Ledger) Proceeds(a graph.Action) bool {
	_, decided := l.decided(a)
	return decided
}

// Waits tells whether an object is held for a cause, and waits for a decision.
func (l *Ledger) Waits(c graph.Cause, i graph.Inference, o graph.Ref) bool {
	acc := l.causes[c]
	if acc == nil || acc.held == nil || l.Proceeds(graph.Action{Object: o, Inferred: i}) {
		return false
	}
	return !acc.passes(o, i)
}

// Goes tells whether an object goes because a person has decided so, or follows one that does, and
// is still there.
func (l *Ledger) Goes(c graph.Cause, i graph.Inference, o graph.Ref) bool {
	acc := l.causes[c]
	if acc == nil || acc.held == nil {
		return false
	}
	return l.Proceeds(graph.Action{Object: o, Inferred: i}) || i.Inherited && acc.follows[o.Kind] > 0
}

// holder is a cause for which something is held, among those of an inference.
func (l *Ledger) holder(i graph.Inference) graph.Cause {
	causes := i.Causes()
	for _, c := range causes {
		if acc := l.causes[c]; acc != nil && acc.held != nil {
			return c
		}
	}
	return causes[0]
}

// signs tells whether it is to be known who wrote the reference for which an object is to go: if an
// edit did. Once something is held for what a client has edited it is of everything: what this
// process has not seen to be an edit may be one.
func (l *Ledger) signs(a graph.Action) bool {
	if l.limits.Off() || a.Inferred.Conclusion == graph.Asked || a.Inferred.Inherited || a.Inferred.Writer != "" {
		return false
	}
	return a.Inferred.Edited || len(l.writersHeld()) > 0
}

// mostWriters is how many clients are counted by their names. A client chooses its name: one that
// takes another for each edit would be counted for none.
const mostWriters = 20

// named is the name by which a client is counted: its own, or one for all that come when there are
// too many.
func (l *Ledger) named(writer string) string {
	if l.causes[graph.Cause{Writer: writer}] != nil {
		return writer
	}
	n := 0
	for c := range l.causes {
		if c.Writer != "" {
			n++
		}
	}
	if n >= mostWriters {
		return graph.UnknownWriter
	}
	return writer
}

// Ends ends a hold: nothing is held by it any more. What it was about is counted again from
// nothing.
func (l *Ledger) Ends(c graph.Cause) { delete(l.causes, c) }

// Tidy forgets causes of which nothing was heard for long.
func (l *Ledger) Tidy(now time.Time) {
	for c, acc := range l.causes {
		if acc.held == nil && now.Sub(acc.turned) >= 4*window {
			delete(l.causes, c)
		}
	}
}
