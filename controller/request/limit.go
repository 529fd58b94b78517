package request

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Limiter bounds the requests under way by what the API server grants: one more for each round of
// requests that went well, a quarter fewer when it says 429. There is no fixed rate: on an idle
// server the bound rises to its maximum within a second.
//
// Kinds are kept apart; see share. Those that fail have a quarter of the places, all together and
// in turns, whether or not others want them. What is left over is for work that no client waits
// for, within a bound of its own, and takes nothing from the bound of others; see allowance.
// Requests that are late already do not count against it: they may hang for long, and others must
// not wait for them. A kind may have a quarter of those, too, and all kinds as many as there are
// places, so that for a while twice as many may be under way.
type Limiter struct {
	mu       sync.Mutex
	most     float64
	limit    float64
	well     int           // under way, of kinds that are well, and not late
	spared   int           // of these: those that have what was left over
	ill      int           // the same of failing kinds, and those of theirs that are called back to be
	late     int           // under way for long, of all kinds
	quickest time.Duration // the best recent latency: it drifts up, so that one lucky answer is forgotten
	slow     atomic.Int64  // after how long an answer is slow, and a request late
	cutAt    time.Time     // the last time the limit was cut: once per answer time, not once per answer
	pause    time.Time     // the API server asked for quiet until then

	shares  map[schema.GroupResource]*share
	turns   []*share             // those that something waits for, the next one first
	allowed allowance            // how many may have what is left over
	spares  []*spare             // those who wait for what is left over
	sparing atomic.Int64         // how many these are
	called  map[types.UID]*share // objects that were called back, until a worker has them
	calls   atomic.Int64         // how many objects are put off or called back
	resume  func(types.UID)      // calls an object back; it must not block, nor come back here
}

const (
	leastLimit = 2
	startLimit = 16
	// MostPause bounds for how long a kind is left alone whose server asks for it.
	MostPause = 2 * time.Minute
)

// NewLimiter makes one that lets at most so many requests be under way.
func NewLimiter(most int) *Limiter {
	n := float64(max(most, leastLimit))
	l := &Limiter{
		most: n, limit: min(startLimit, n), shares: map[schema.GroupResource]*share{},
		called: map[types.UID]*share{}, resume: func(types.UID) {}, allowed: newAllowance(n),
	}
	l.slow.Store(int64(slowFactor * slowestQuick))
	return l
}

// Places is how many requests may be under way at once at the very most.
func (l *Limiter) Places() int { return int(l.most) }

// SparePlaces is how many of them may be used at once, at the very most, for what no client waits
// for.
func (l *Limiter) SparePlaces() int { return int(l.allowed.most) }

// CallBack has objects that were put off called back. f must not block, nor come back here.
func (l *Limiter) CallBack(f func(types.UID)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.resume = f
}

// acquire waits for a place; every successful call must be followed by release. It waits as long as
// it takes while the kind is well. For a failing kind only the patient wait, and not long: others
// have more to do than that. They get a *busyError.
func (l *Limiter) acquire(ctx context.Context, kind schema.GroupResource, patient bool) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	l.mu.Lock()
	s := l.shareLocked(kind)
	if l.roomLocked(s) {
		l.takeLocked(s)
		l.mu.Unlock()
		return nil
	}
	if s.failing != "" && (!patient || s.hopelessLocked(l.quarter())) {
		err := s.busy()
		l.mu.Unlock()
		return err
	}
	w := &waiter{given: make(chan error, 1), patient: patient}
	s.waiters = append(s.waiters, w)
	l.queueLocked(s)
	l.mu.Unlock()
	return l.wait(ctx, s, w)
}

func (l *Limiter) wait(ctx context.Context, s *share, w *waiter) error {
	enough := time.NewTimer(patience)
	defer enough.Stop()
	for {
		select {
		case err := <-w.given:
			return err
		case <-ctx.Done():
		case <-enough.C:
		}
		l.mu.Lock()
		err := ctx.Err()
		if err == nil && s.failing != "" {
			err = s.busy()
		}
		switch {
		case err == nil:
			enough.Reset(patience)
		case slices.Contains(s.waiters, w):
			s.waiters = slices.DeleteFunc(s.waiters, func(x *waiter) bool { return x == w })
			l.leaveLocked(s)
		default: // it was answered at the same moment
			if given := <-w.given; given == nil {
				l.giveBackLocked(s, false)
				l.wakeLocked()
			}
		}
		l.mu.Unlock()
		if err != nil {
			return err
		}
	}
}

// release gives the place back, with what came of the request.
func (l *Limiter) release(kind schema.GroupResource, a answer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.shareLocked(kind)
	full := float64(l.well-l.spared) >= l.limit-1 && !a.spare
	if a.spare {
		l.spareAnsweredLocked(s, a)
	}
	l.giveBackLocked(s, a.late)
	switch {
	case a.verdict == noVerdict:
	case a.verdict == throttledByServer:
		l.cutLocked(a.latency)
		l.allowed.throttled(a.latency)
		l.pauseLocked(max(a.retryAfter, time.Second))
	case a.verdict == throttledByKind:
		s.most = min(s.most, l.quarter())
		s.shrink(a.latency, 1)
		s.rest(a.retryAfter, l.wake)
		l.failingLocked(s, "are answered 429")
	case a.verdict == unanswered:
		if s.failures++; float64(s.failures) >= s.most {
			s.rest(0, l.wake)
			l.failingLocked(s, "fail")
		}
	case a.late && a.long:
	case !a.long && a.latency > time.Duration(l.slow.Load()):
		s.failures = 0
		if s.shrink(a.latency, l.quarter()); s.most <= l.quarter() {
			l.failingLocked(s, slowly)
		}
	default:
		if full {
			l.limit = min(l.most, l.limit+1/l.limit*2)
		}
		s.answered = true
		s.grow(l.most)
		l.healLocked(s)
	}
	l.learnLocked(a)
	l.wakeLocked()
}

// learnLocked keeps the best recent latency.
func (l *Limiter) learnLocked(a answer) {
	switch {
	case a.verdict != fine || a.long:
	case l.quickest == 0 || a.latency < l.quickest:
		l.quickest = a.latency
	default:
		l.quickest += l.quickest / 1000
	}
	l.slow.Store(int64(min(slowestEver, slowFactor*max(l.quickest, slowestQuick))))
}

func (l *Limiter) cutLocked(latency time.Duration) {
	if now := time.Now(); now.Sub(l.cutAt) > latency {
		l.cutAt = now
		l.limit = max(leastLimit, l.limit*0.75)
	}
}

func (l *Limiter) pauseLocked(pause time.Duration) {
	pause = min(pause, MostPause)
	if until := time.Now().Add(pause); until.After(l.pause) {
		l.pause = until
		time.AfterFunc(pause, l.wake)
	}
}

// quarter is what all failing kinds have together, and what each kind begins with.
func (l *Limiter) quarter() float64 { return max(1, l.most/4) }

// roomLocked tells whether a request of a kind may be sent now. Places are kept for objects that
// were called back only while only the patient wait for the kind: else all workers could wait for
// places that are kept for what none of them comes to.
func (l *Limiter) roomLocked(s *share) bool {
	now := time.Now()
	switch {
	case now.Before(l.pause), float64(s.under) >= s.most:
		return false
	case s.failing == "" && !s.answered && s.under > 0 && float64(l.late) >= l.most:
		return false // not one more that may hang
	case s.failing == "":
		return float64(l.well-l.spared) < l.limit && float64(l.well) < l.most-min(float64(l.ill+l.late), l.quarter())
	case now.Before(s.pause):
		return false
	case s.under+s.called == 0: // it may be well again
		return true
	}
	return float64(s.under+s.called) < min(s.most, l.quarter()) && float64(l.ill) < min(l.quarter(), l.limit) && float64(l.late) < l.most
}

func (l *Limiter) takeLocked(s *share) {
	s.under++
	if s.failing != "" {
		l.ill++
	} else {
		l.well++
	}
}

func (l *Limiter) giveBackLocked(s *share, late bool) {
	s.under--
	switch {
	case late:
		s.late--
		l.late--
	case s.failing != "":
		l.ill--
	default:
		l.well--
	}
}

// Bound is the number of requests that may be under way now.
func (l *Limiter) Bound() float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.limit
}
