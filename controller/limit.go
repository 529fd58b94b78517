package controller

import (
	"context"
	"sync"
	"time"
)

// limiter bounds the requests under way by what the API server grants: one more for each round of
// requests that went well, a quarter fewer when it says 429 or answers ten times slower than it can.
// Slowness alone leaves startLimit: a busy machine is slow for everybody, and who holds back most is
// served least.
// There is no fixed rate: on an idle server the bound rises to its maximum within a second.
type limiter struct {
	mu       sync.Mutex
	most     float64
	limit    float64
	inflight int
	waiting  []chan struct{}
	quickest time.Duration // the best latency of late: it drifts up, so that one lucky answer is forgotten
	cutAt    time.Time     // the last time the limit was cut: once per answer time, not once per answer
	pause    time.Time     // the server asked for quiet until then
}

const (
	leastLimit   = 2
	startLimit   = 16
	slowFactor   = 10
	slowestQuick = 20 * time.Millisecond // ten times this is slow however quick the server can be
)

func newLimiter(most int) *limiter {
	return &limiter{most: float64(max(most, leastLimit)), limit: min(startLimit, float64(max(most, leastLimit)))}
}

// acquire waits for a place. Every successful call must be followed by release.
func (l *limiter) acquire(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	l.mu.Lock()
	if quiet := time.Until(l.pause); quiet > 0 {
		l.mu.Unlock()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(quiet):
		}
		l.mu.Lock()
	}
	if float64(l.inflight) < l.limit && len(l.waiting) == 0 {
		l.inflight++
		l.mu.Unlock()
		return nil
	}
	place := make(chan struct{})
	l.waiting = append(l.waiting, place)
	l.mu.Unlock()
	select {
	case <-place:
		return nil
	case <-ctx.Done():
		l.mu.Lock()
		defer l.mu.Unlock()
		select {
		case <-place: // given at the same moment: hand it on
			l.inflight--
			l.admitLocked()
		default:
			for i, w := range l.waiting {
				if w == place {
					l.waiting = append(l.waiting[:i], l.waiting[i+1:]...)
					break
				}
			}
		}
		return ctx.Err()
	}
}

// release gives the place back, with what the request was like. throttled: the server said 429, and to
// come back after retryAfter.
func (l *limiter) release(latency time.Duration, throttled bool, retryAfter time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	full := float64(l.inflight) >= l.limit-1
	l.inflight--
	switch {
	case throttled:
		l.cutLocked(latency, leastLimit)
		if until := time.Now().Add(retryAfter); until.After(l.pause) {
			l.pause = until
		}
	case l.quickest != 0 && latency > slowFactor*max(l.quickest, slowestQuick):
		l.cutLocked(latency, startLimit)
	case full:
		l.limit = min(l.most, l.limit+1/l.limit*2)
	}
	if !throttled {
		if l.quickest == 0 || latency < l.quickest {
			l.quickest = latency
		} else {
			l.quickest += l.quickest / 1000
		}
	}
	l.admitLocked()
}

func (l *limiter) cutLocked(latency time.Duration, least float64) {
	if now := time.Now(); now.Sub(l.cutAt) > latency {
		l.cutAt = now
		l.limit = max(min(least, l.limit), l.limit*0.75)
	}
}

func (l *limiter) admitLocked() {
	for len(l.waiting) > 0 && float64(l.inflight) < l.limit {
		l.inflight++
		close(l.waiting[0])
		l.waiting = l.waiting[1:]
	}
}

// bound is the number of requests that may be under way now.
func (l *limiter) bound() float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.limit
}
