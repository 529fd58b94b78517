package controller

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// run sends n requests through a limiter from as many clients as it lets through, each taking latency,
// and returns the most that were under way at once.
func run(l *limiter, n int, latency time.Duration, throttled bool) int {
	peak := make(chan int, n)
	done := make(chan struct{}, n)
	for range n {
		go func() {
			if l.acquire(context.Background()) != nil {
				return
			}
			l.mu.Lock()
			peak <- l.inflight
			l.mu.Unlock()
			<-time.After(latency) // on the bubble's clock
			l.release(latency, throttled, 0)
			done <- struct{}{}
		}()
	}
	most := 0
	for range n {
		<-done
		most = max(most, <-peak)
	}
	return most
}

func TestLimitRisesToItsMaximumWhileTheServerKeepsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(64)
		if first := run(l, startLimit*2, 10*time.Millisecond, false); first < startLimit || first > startLimit+4 {
			t.Errorf("%d requests at once to begin with, want about %d", first, startLimit)
		}
		began := time.Now()
		if most := run(l, 3000, 10*time.Millisecond, false); most != 64 {
			t.Errorf("%d requests at once in the end, want 64", most)
		}
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("3000 requests of 10 ms took %s with up to 64 at once", took)
		}
	})
}

func TestLimitFallsWhenTheServerThrottlesAndRecovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(64)
		run(l, 3000, 10*time.Millisecond, false)
		run(l, 1000, 10*time.Millisecond, true)
		if got := l.bound(); got != leastLimit {
			t.Errorf("bound is %.1f after a thousand 429s, want %d", got, leastLimit)
		}
		run(l, 3000, 10*time.Millisecond, false)
		if got := l.bound(); got < 32 {
			t.Errorf("bound is %.1f after 3000 good answers, want it to recover", got)
		}
	})
}

func TestLimitFallsWhenAnswersGetTenTimesSlower(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(64)
		run(l, 3000, 10*time.Millisecond, false)
		run(l, 1000, 500*time.Millisecond, false)
		if got := l.bound(); got < startLimit || got > startLimit+2 {
			t.Errorf("bound is %.1f while answers take 50 times as long, want %d", got, startLimit)
		}
	})
}

func TestRetryAfterHoldsBackEveryRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(8)
		if err := l.acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
		l.release(time.Millisecond, true, 3*time.Second)
		began := time.Now()
		if err := l.acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(began); waited != 3*time.Second {
			t.Errorf("waited %s, want 3s", waited)
		}
	})
}

func TestGivingUpWaitingLosesNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(leastLimit)
		for range leastLimit {
			if err := l.acquire(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for range 100 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			if err := l.acquire(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("acquire from a full limiter: %v", err)
			}
			cancel()
		}
		for range leastLimit {
			l.release(time.Millisecond, false, 0)
		}
		if l.inflight != 0 || len(l.waiting) != 0 {
			t.Errorf("%d under way and %d waiting when all is over", l.inflight, len(l.waiting))
		}
		if err := l.acquire(t.Context()); err != nil {
			t.Errorf("acquire from an empty limiter: %v", err)
		}
	})
}
