package request

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Limiter bounds the requests under way. The bound grows by one for each round of requests that
// went well, and shrinks by a quarter after a 429. There is no fixed rate: on an idle server the
// bound reaches its maximum within a second.
//
// Each kind has a share of the places; see share. Failing kinds take no places from the others: all
// together they have a quarter as many, beside them. Late requests do not count, because they may
// hang for long and others must not wait for them. So for a while twice as many may be under way.
type Limiter struct {
	mu     sync.Mutex
	most   float64
	limit  float64
	well   int       // under way and not late, sent while their kind was well
	sick   int       // under way and not late, sent while their kind was failing
	late   int       // under way and late, of all kinds
	cutAt  time.Time // when the limit was last cut: at most once in the time of an answer
	pause  time.Time // nothing is sent until then, as the API server asked
	shares map[schema.GroupResource]*share
	turns  []*share        // shares with waiting requests, the next one first
	ticks  bool            // a call of tick is scheduled
	resume func(types.UID) // called with objects that were put off, when there is room
}

const (
	leastLimit = 2
	startLimit = 16
	// MostPause bounds how long nothing is sent because a server asked for it.
	MostPause = 2 * time.Minute
	// tickEvery is how often tick is called while anything waits.
	tickEvery = 100 * time.Millisecond
)

// NewLimiter returns a Limiter that lets at most so many requests be under way.
func NewLimiter(most int) *Limiter {
	n := float64(max(most, leastLimit))
	return &Limiter{
		most: n, limit: min(startLimit, n),
		shares: map[schema.GroupResource]*share{}, resume: func(types.UID) {},
	}
}

// Places returns the maximum of Bound.
func (l *Limiter) Places() int { return int(l.most) }

// Bound returns how many requests may be under way now.
func (l *Limiter) Bound() float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.limit
}

// CallBack sets the function that is called with objects that were put off. It must not block.
func (l *Limiter) CallBack(f func(types.UID)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.resume = f
}

// place is the place of one request, from when it waits until it is given back.
type place struct {
	share   *share
	sick    bool       // taken while its kind was failing
	late    bool       // the request has been under way for long
	over    bool       // given back
	patient bool       // waits even if its kind fails
	since   time.Time  // when it began to wait
	told    chan error // receives nil when the place is taken
}

// acquire waits for a place. Each place must be given back with release. While the kind is well,
// acquire waits as long as it takes. For a failing kind only a patient caller waits, and not for
// long, nor if many wait already. Others get a *busyError, because they have other work.
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
	} else if <-p.told == nil { // it was taken at the same moment
		l.countLocked(p, -1)
		l.wakeLocked()
	}
	return nil, ctx.Err()
}

// isLate marks a request as late. Late requests do not count against the bound, so that others need
// not wait for them. When late requests of a kind hold a quarter of all places, the kind fails; a
// few late answers are usual.
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

// release gives a place back, with the verdict about the request.
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
		// One good answer ends a failure, except while the kind rests: it is to an earlier request.
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

// quarter returns the places that all failing kinds have together, and that each kind begins with.
func (l *Limiter) quarter() int { return max(1, int(l.most)/4) }

// roomLocked reports whether a request of a kind may be sent now.
func (l *Limiter) roomLocked(s *share) bool {
	now := time.Now()
	switch {
	case now.Before(l.pause), now.Before(s.pause), s.under >= s.most:
		return false
	case s.under == 0 && s.failing != "": // one request finds out whether it is well again
		return true
	case s.most <= l.quarter() && s.under > 0 && l.late >= int(l.most):
		return false // no more that may hang
	case s.failing != "":
		return float64(l.sick) < max(1, l.limit/4)
	}
	return float64(l.well) < l.limit
}

func (l *Limiter) takeLocked(p *place) {
	p.sick = p.share.failing != ""
	l.countLocked(p, 1)
}

// countLocked counts a place: n is 1 when it is taken, and -1 when it is given back.
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

// wakeLocked gives the free places to waiting requests, one kind after the other.
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

// dropLocked removes waiting requests from a share.
func (l *Limiter) dropLocked(s *share, which func(*place) bool) {
	s.waiting = slices.DeleteFunc(s.waiting, which)
	if len(s.waiting) == 0 {
		l.turns = slices.DeleteFunc(l.turns, func(x *share) bool { return x == s })
	}
}

// tickLaterLocked schedules a call of tick, if there is none yet.
func (l *Limiter) tickLaterLocked() {
	if !l.ticks {
		l.ticks = true
		time.AfterFunc(tickEvery, l.tick)
	}
}

// tick does what depends on time. It returns a busy error to those that have waited for a failing
// kind for long enough, gives places to kinds that have rested, and calls back objects that were
// put off.
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
