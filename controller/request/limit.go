package request

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Limiter bounds the requests under way. The bound grows by one for each round of requests that
// went well, and shrinks by a quarter after a 429. There is no fixed rate: on an idle server the
// bound reaches its maximum within a second. Late requests do not count, because they may hang for
// long and others must not wait for them.
//
// An aggregated API or a webhook can make one kind fail, and the others must not notice. So each
// kind has a share of the places, and all failing kinds together have a quarter of them. No worker
// waits with an object of a failing kind: it is put off, and called back when there is room.
type Limiter struct {
	// CallBack is called with objects that were put off, when there is room. It must not block, and is
	// set before the first request.
	CallBack func(types.UID)

	mu      sync.Mutex
	most    float64
	limit   float64
	cutAt   time.Time // when the limit was last cut: at most once in the time of an answer
	pause   time.Time // nothing is sent until then, as the API server asked
	shares  map[schema.GroupResource]*share
	waiting []*place // in the order in which they came
	ticks   bool     // a call of tick is scheduled
}

// share is the state of one kind. A kind begins with a quarter of the places, and gets one more for
// each request that goes well, up to all. It fails when its requests hang, are slow, fail one after
// another, or are answered 429, until one goes well. Then it has a quarter again.
type share struct {
	kind     schema.GroupResource
	most     int           // how many may be under way
	under    int           // under way
	late     int           // of under: those that have been for long
	failures int           // since the last good answer
	backoff  time.Duration // the last rest that no server asked for
	pause    time.Time     // nothing is sent until then
	failing  string        // what happens to requests of the kind; "" if it is well
	off      map[types.UID]struct{}
}

// place is the place of one request, from when it waits until it is given back.
type place struct {
	share   *share
	late    bool       // the request has been under way for long
	over    bool       // given back
	patient bool       // waits even if its kind fails
	since   time.Time  // when it began to wait
	told    chan error // receives nil when the place is taken
}

type verdict uint8

const (
	noVerdict         verdict = iota // the request was ended here, or not sent
	fine                             // any answer of the API
	unanswered                       // the API, or the way to it, failed
	throttledByKind                  // 429 from the API that serves the kind
	throttledByServer                // 429 from the API server's own limits: for all kinds
)

const (
	leastLimit = 2
	startLimit = 16
	// isLong is after what time a request is late. longIsLong is the same for requests that may take
	// long. A request is answered in some 10 ms, unless a webhook is slow or the server busy.
	isLong     = 250 * time.Millisecond
	longIsLong = 5 * time.Second
	// MostPause bounds how long nothing is sent because a server asked for it.
	MostPause = 2 * time.Minute
	// patience bounds how long a request about a failing kind waits. firstRest and mostRest bound the
	// pauses of a kind whose requests fail.
	patience  = 5 * time.Second
	firstRest = 100 * time.Millisecond
	mostRest  = 5 * time.Second
	// tickEvery is how often tick is called while anything waits.
	tickEvery = 100 * time.Millisecond
	// mostCalled is how many objects of a kind that is well again are called back at each tick. It is
	// more than can be sent before the next tick, and not all, which would be put off once more if the
	// kind fails again.
	mostCalled = 1000
)

// busyError is why a request was not sent: its kind fails. Nothing has happened to the object.
type busyError struct {
	kind    schema.GroupResource
	failing string
}

func (e *busyError) Error() string {
	return fmt.Sprintf("put off: requests about %s %s", e.kind, e.failing)
}

// IsBusy reports whether a request was not sent because requests of its kind fail.
func IsBusy(err error) bool {
	var busy *busyError
	return err != nil && errors.As(err, &busy)
}

// NewLimiter returns a Limiter that lets at most so many requests be under way.
func NewLimiter(most int) *Limiter {
	n := float64(max(most, leastLimit))
	return &Limiter{
		most: n, limit: min(startLimit, n),
		shares: map[schema.GroupResource]*share{}, CallBack: func(types.UID) {},
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

// acquire waits for a place. Each place must be given back with release. While the kind is well,
// acquire waits as long as it takes. For a failing kind only a patient caller waits, and not for
// long, nor if many wait already. Others get a *busyError, because they have other work.
func (l *Limiter) acquire(ctx context.Context, kind schema.GroupResource, patient bool) (*place, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	l.mu.Lock()
	p := &place{share: l.shareLocked(kind), patient: patient, since: time.Now(), told: make(chan error, 1)}
	l.waiting = append(l.waiting, p)
	l.wakeLocked()
	l.mu.Unlock()
	select {
	case err := <-p.told:
		return p, err
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.waiting, p); i >= 0 {
		l.waiting = slices.Delete(l.waiting, i, i+1)
	} else if <-p.told == nil { // it was taken at the same moment
		p.share.under--
		l.wakeLocked()
	}
	return nil, ctx.Err()
}

// isLate marks a request as late. When late requests of a kind hold a quarter of all places, the
// kind fails; a few late answers are usual.
func (l *Limiter) isLate(p *place) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.over {
		return
	}
	p.late = true
	if p.share.late++; p.share.late >= l.quarter() {
		l.failsLocked(p.share, "take long")
	}
	l.wakeLocked()
}

// release gives a place back, with the verdict about the request.
func (l *Limiter) release(p *place, v verdict, latency, retryAfter time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, full := p.share, float64(l.loadLocked().well) >= l.limit-1
	s.under--
	if p.over = true; p.late {
		s.late--
	}
	switch v {
	case noVerdict:
	case throttledByServer:
		if now := time.Now(); now.Sub(l.cutAt) > latency {
			l.cutAt = now
			l.limit = max(leastLimit, l.limit*0.75)
		}
		l.pause = later(l.pause, max(retryAfter, time.Second))
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

// rest pauses a kind for as long as was asked, or, if 0, twice as long as the last time.
func (s *share) rest(asked time.Duration) {
	if asked == 0 {
		if time.Now().Before(s.pause) {
			return // the failed request was sent before the pause
		}
		s.backoff = min(mostRest, max(firstRest, 2*s.backoff))
		asked = s.backoff
	}
	s.pause = later(s.pause, asked)
}

// later returns when a pause ends that a server asks for now, which does not end an earlier one.
func later(pause time.Time, asked time.Duration) time.Time {
	if until := time.Now().Add(min(asked, MostPause)); until.After(pause) {
		return until
	}
	return pause
}

func (l *Limiter) shareLocked(kind schema.GroupResource) *share {
	s := l.shares[kind]
	if s == nil {
		s = &share{kind: kind, most: l.quarter(), off: map[types.UID]struct{}{}}
		l.shares[kind] = s
	}
	return s
}

// forget drops the state of kinds that are not served any more.
func (l *Limiter) forget(served func(schema.GroupResource) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for kind, s := range l.shares {
		if !served(kind) && s.under+len(s.off) == 0 {
			delete(l.shares, kind)
		}
	}
}

func (l *Limiter) failsLocked(s *share, why string) { s.failing, s.most = why, l.quarter() }

// quarter returns the places that each kind begins with.
func (l *Limiter) quarter() int { return max(1, int(l.most)/4) }

// load is what is under way, at a moment.
type load struct {
	now              time.Time
	well, sick, late int // of kinds that are well, without late ones; of failing kinds; late ones of all
}

func (l *Limiter) loadLocked() load {
	n := load{now: time.Now()}
	for _, s := range l.shares {
		n.late += s.late
		if s.failing != "" {
			n.sick += s.under
		} else {
			n.well += s.under - s.late
		}
	}
	return n
}

// roomLocked reports whether a request of a kind may be sent now.
func (l *Limiter) roomLocked(s *share, n load) bool {
	switch {
	case n.now.Before(l.pause), n.now.Before(s.pause), s.under >= s.most:
		return false
	case s.under == 0 && s.failing != "": // one request finds out whether it is well again
		return true
	case s.failing != "":
		return float64(n.sick) < max(1, l.limit/4)
	case s.most <= l.quarter() && s.under > 0 && n.late >= int(l.most):
		return false // no more that may hang
	}
	return float64(n.well) < l.limit
}

// wakeLocked gives the free places to waiting requests, and ends the wait of those about failing
// kinds.
func (l *Limiter) wakeLocked() {
	n, patient := l.loadLocked(), map[*share]int{}
	l.waiting = slices.DeleteFunc(l.waiting, func(p *place) bool {
		s := p.share
		switch {
		case l.roomLocked(s, n):
			if s.under++; s.failing != "" {
				n.sick++
			} else {
				n.well++
			}
			p.told <- nil
			return true
		case s.failing == "":
			return false
		case p.patient && n.now.Sub(p.since) < patience && patient[s] < l.quarter():
			patient[s]++
			return false
		}
		p.told <- &busyError{s.kind, s.failing}
		return true
	})
	if len(l.waiting) > 0 {
		l.tickLaterLocked()
	}
}

// tickLaterLocked schedules a call of tick, if there is none yet.
func (l *Limiter) tickLaterLocked() {
	if !l.ticks {
		l.ticks = true
		time.AfterFunc(tickEvery, l.tick)
	}
}

// tick does what depends on time: it wakes requests when a pause is over, and calls back objects
// that were put off, as many as there is room for. One that finds no room in its turn is put off
// again.
func (l *Limiter) tick() {
	var back []types.UID
	l.mu.Lock()
	l.ticks = false
	l.wakeLocked()
	for _, s := range l.shares {
		room := mostCalled
		if s.failing != "" {
			if room = 0; l.roomLocked(s, l.loadLocked()) {
				room = s.most - s.under
			}
		}
		for uid := range s.off {
			if room == 0 {
				l.tickLaterLocked()
				break
			}
			room--
			delete(s.off, uid)
			back = append(back, uid)
		}
	}
	l.mu.Unlock()
	for _, uid := range back {
		l.CallBack(uid)
	}
}

// PutOff has an object of a failing kind called back when there is room.
func (l *Limiter) PutOff(kind schema.GroupResource, uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shareLocked(kind).off[uid] = struct{}{}
	l.tickLaterLocked()
}

// Failing returns what happens to requests about a kind; empty if it is well.
func (l *Limiter) Failing(kind schema.GroupResource) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.shares[kind]; s != nil && s.failing != "" {
		return fmt.Sprintf("requests about %s %s", s.kind, s.failing)
	}
	return ""
}

// PutOffs returns how many objects are put off, of each failing kind.
func (l *Limiter) PutOffs() map[schema.GroupResource]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := map[schema.GroupResource]int{}
	for kind, s := range l.shares {
		if s.failing != "" {
			n[kind] = len(s.off)
		}
	}
	return n
}
