package request

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Limiter bounds the requests under way by what the API server grants: one more for each round of
// requests that went well, a quarter fewer when it says 429. There is no fixed rate: on an idle
// server the bound rises to its maximum within a second.
//
// Each kind has a share; see share. Kinds that fail take no places from the others: they have a
// quarter as many beside them, all together. Requests that are late do not count: they may hang for
// long, and others must not wait for them. So for a while twice as many may be under way.
type Limiter struct {
	mu     sync.Mutex
	most   float64
	limit  float64
	well   int       // under way and not late, of kinds that were well when they were sent
	sick   int       // the same of kinds that failed
	late   int       // under way for long, of all kinds
	cutAt  time.Time // the last time the limit was cut: once per answer time, not once per answer
	pause  time.Time // the API server asked for quiet until then
	shares map[schema.GroupResource]*share
	turns  []*share        // those that somebody waits for, the next one first
	ticks  bool            // tick is to be called
	resume func(types.UID) // calls back an object that was put off
}

const (
	leastLimit = 2
	startLimit = 16
	// MostPause bounds for how long a kind is left alone whose server asks for it.
	MostPause = 2 * time.Minute
	// tickEvery is how often the clock is looked at while something waits.
	tickEvery = 100 * time.Millisecond
)

// NewLimiter makes one that lets at most so many requests be under way.
func NewLimiter(most int) *Limiter {
	n := float64(max(most, leastLimit))
	return &Limiter{
		most: n, limit: min(startLimit, n),
		shares: map[schema.GroupResource]*share{}, resume: func(types.UID) {},
	}
}

// Places is how many requests may be under way at once at the very most.
func (l *Limiter) Places() int { return int(l.most) }

// Bound is the number of requests that may be under way now.
func (l *Limiter) Bound() float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.limit
}

// CallBack has objects that were put off called back by f, which must not block.
func (l *Limiter) CallBack(f func(types.UID)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.resume = f
}

// place is what a request has while it is under way, and before that what somebody waits for.
type place struct {
	share   *share
	sick    bool       // it is one of those for kinds that fail
	late    bool       // the request has not been answered for long
	over    bool       // it was given back
	patient bool       // who waits for it waits for a failing kind, too
	since   time.Time  // when the waiting began
	told    chan error // nil: it is there
}

// acquire waits for a place; every successful call must be followed by release. It waits as long as
// it takes while the kind is well. For a failing kind only the patient wait, and not long, nor if
// many do so already: others have more to do than that. They get a *busyError.
func (l *Limiter) acquire(ctx context.Context, kind schema.GroupResource, patient bool) (*place, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	l.mu.Lock()
	s := l.shareLocked(kind)
	p := &place{share: s, patient: patient, since: time.Now(), told: make(chan error, 1)}
	if l.roomLocked(s) {
		l.takeLocked(p)
		l.mu.Unlock()
		return p, nil
	}
	if s.failing != "" && (!patient || len(s.waiting) >= l.quarter()) {
		defer l.mu.Unlock()
		return nil, s.busy()
	}
	if s.waiting = append(s.waiting, p); len(s.waiting) == 1 {
		l.turns = append(l.turns, s)
	}
	l.tickLaterLocked()
	l.mu.Unlock()
	select {
	case err := <-p.told:
		return p, err
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if slices.Contains(s.waiting, p) {
		l.dropLocked(s, func(x *place) bool { return x == p })
	} else if <-p.told == nil { // it was given at the same moment
		l.countLocked(p, -1)
		l.wakeLocked()
	}
	return nil, ctx.Err()
}

// isLate tells that a request has not been answered for long. It holds its place for as long as it
// takes, so others must not wait for it. When a quarter of all places is held like this, the kind
// fails: few late answers are usual.
func (l *Limiter) isLate(p *place) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.over {
		return
	}
	l.countLocked(p, -1)
	p.late = true
	l.countLocked(p, 1)
	if p.share.late >= l.quarter() {
		l.failsLocked(p.share, "take long")
	}
	l.wakeLocked()
}

// release gives the place back, with what came of the request.
func (l *Limiter) release(p *place, v verdict, latency, retryAfter time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, full := p.share, float64(l.well) >= l.limit-1
	l.countLocked(p, -1)
	p.over = true
	switch v {
	case noVerdict:
	case throttledByServer:
		l.cutLocked(latency)
		if until := time.Now().Add(min(max(retryAfter, time.Second), MostPause)); until.After(l.pause) {
			l.pause = until
		}
	case throttledByKind:
		s.rest(retryAfter)
		l.failsLocked(s, "are answered 429")
	case unanswered:
		if s.failures++; s.failures >= l.quarter() {
			s.rest(0)
			l.failsLocked(s, "fail")
		}
	case fine:
		if s.failures = 0; p.late {
			break
		}
		if full {
			l.limit = min(l.most, l.limit+2/l.limit)
		}
		s.most = min(int(l.most), s.most+1)
		// One good answer is enough, but not while the kind rests: it is to what was sent before.
		if s.late < l.quarter() && !time.Now().Before(s.pause) {
			s.failing, s.backoff = "", 0
		}
	}
	l.wakeLocked()
}

func (l *Limiter) cutLocked(latency time.Duration) {
	if now := time.Now(); now.Sub(l.cutAt) > latency {
		l.cutAt = now
		l.limit = max(leastLimit, l.limit*0.75)
	}
}

// quarter is what all failing kinds have together, and what each kind begins with.
func (l *Limiter) quarter() int { return max(1, int(l.most)/4) }

// roomLocked tells whether a request of a kind may be sent now.
func (l *Limiter) roomLocked(s *share) bool {
	now := time.Now()
	switch {
	case now.Before(l.pause), now.Before(s.pause), s.under >= s.most:
		return false
	case s.under == 0 && s.failing != "": // it may be well again
		return true
	case s.most <= l.quarter() && s.under > 0 && l.late >= int(l.most):
		return false // not one more that may hang
	case s.failing != "":
		return float64(l.sick) < max(1, l.limit/4)
	}
	return float64(l.well) < l.limit
}

func (l *Limiter) takeLocked(p *place) {
	p.sick = p.share.failing != ""
	l.countLocked(p, 1)
}

// countLocked counts a place where it belongs: n is 1 when it is taken, -1 when it is given back.
func (l *Limiter) countLocked(p *place, n int) {
	p.share.under += n
	switch {
	case p.late:
		p.share.late += n
		l.late += n
	case p.sick:
		l.sick += n
	default:
		l.well += n
	}
}

// wakeLocked gives away what room there is, by turns.
func (l *Limiter) wakeLocked() {
	for idle := 0; idle < len(l.turns); {
		s := l.turns[0]
		l.turns = append(l.turns[1:], s)
		if !l.roomLocked(s) {
			idle++
			continue
		}
		idle = 0
		first := s.waiting[0]
		l.takeLocked(first)
		l.dropLocked(s, func(p *place) bool { return p == first })
		first.told <- nil
	}
}

// dropLocked takes out of a share those who do not wait any more.
func (l *Limiter) dropLocked(s *share, which func(*place) bool) {
	s.waiting = slices.DeleteFunc(s.waiting, which)
	if len(s.waiting) == 0 {
		l.turns = slices.DeleteFunc(l.turns, func(x *share) bool { return x == s })
	}
}

// tickLaterLocked has the clock looked at before long.
func (l *Limiter) tickLaterLocked() {
	if !l.ticks {
		l.ticks = true
		time.AfterFunc(tickEvery, l.tick)
	}
}

// tick does what time brings: it sends away those who have waited for a failing kind for long
// enough, gives away the places of kinds that have rested, and calls objects back that were put
// off.
func (l *Limiter) tick() {
	var back []types.UID
	l.mu.Lock()
	l.ticks = false
	for _, s := range slices.Clone(l.turns) {
		l.dropLocked(s, func(p *place) bool {
			enough := s.failing != "" && (!p.patient || time.Since(p.since) >= patience)
			if enough {
				p.told <- s.busy()
			}
			return enough
		})
	}
	l.wakeLocked()
	waits := len(l.turns) > 0
	for _, s := range l.shares {
		back = append(back, l.callLocked(s)...)
		waits = waits || len(s.off) > 0
	}
	if waits {
		l.tickLaterLocked()
	}
	resume := l.resume
	l.mu.Unlock()
	for _, uid := range back {
		resume(uid)
	}
}
