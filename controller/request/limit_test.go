package request

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/internal/testkit/fixture"
)

// run sends n requests about a kind through a limiter from as many clients as it lets through, each
// answered like a, and returns the most that were under way at once.
func run(l *Limiter, kind schema.GroupResource, n int, a answer) int {
	most, under := 0, 0
	var mu sync.Mutex
	var sent sync.WaitGroup
	for range n {
		sent.Go(func() {
			if l.acquire(context.Background(), kind, true) != nil {
				return
			}
			mu.Lock()
			under++
			most = max(most, under)
			mu.Unlock()
			a := a
			late := time.AfterFunc(time.Duration(l.slow.Load()), func() { l.isLate(kind, false) })
			<-time.After(a.latency) // on the bubble's clock
			a.late = !late.Stop()
			mu.Lock()
			under--
			mu.Unlock()
			l.release(kind, a)
		})
	}
	sent.Wait()
	return most
}

// like is an answer after a while.
func like(v verdict, latency time.Duration) answer { return answer{verdict: v, latency: latency} }

func TestLimitRisesToItsMaximumWhileTheServerKeepsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLimiter(64)
		if first := run(l, fixture.Pods, startLimit*2, like(fine, 10*time.Millisecond)); first < startLimit || first > startLimit+4 {
			t.Errorf("%d requests at once to begin with, want about %d", first, startLimit)
		}
		began := time.Now()
		if most := run(l, fixture.Pods, 3000, like(fine, 10*time.Millisecond)); most != 64 {
			t.Errorf("%d requests at once in the end, want 64", most)
		}
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("3000 requests of 10 ms took %s with up to 64 at once", took)
		}
	})
}

func TestLimitIsLoweredWhenTheServerThrottlesAndRecovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLimiter(64)
		run(l, fixture.Pods, 3000, like(fine, 10*time.Millisecond))
		run(l, fixture.Pods, 1000, like(throttledByServer, 10*time.Millisecond))
		if got := l.Bound(); got != leastLimit {
			t.Errorf("bound is %.1f after a thousand 429s, want %d", got, leastLimit)
		}
		run(l, fixture.Pods, 3000, like(fine, 10*time.Millisecond))
		if got := l.Bound(); got < 32 {
			t.Errorf("bound is %.1f after 3000 good answers, want it to recover", got)
		}
	})
}

// TestSlowKindHasAQuarterOfThePlaces, as has the whole API server when it is slow for all: a busy
// machine is slow for everybody, and who holds back most is served least.
func TestSlowKindHasAQuarterOfThePlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLimiter(64)
		run(l, fixture.Pods, 3000, like(fine, 10*time.Millisecond))
		run(l, fixture.Pods, 64, like(fine, 500*time.Millisecond))
		if got := run(l, fixture.Pods, 1000, like(fine, 500*time.Millisecond)); got != 16 {
			t.Errorf("%d requests at once while answers take 50 times as long, want 16", got)
		}
		if got := l.Bound(); got < 63 {
			t.Errorf("bound is %.1f for all kinds after one was slow", got)
		}
		run(l, fixture.Pods, 2000, like(fine, 10*time.Millisecond))
		if got := run(l, fixture.Pods, 1000, like(fine, 10*time.Millisecond)); got < 48 {
			t.Errorf("%d requests at once when answers are quick again", got)
		}
	})
}

func TestServersRetryAfterHoldsBackEveryRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLimiter(8)
		if err := l.acquire(t.Context(), fixture.Pods, false); err != nil {
			t.Fatal(err)
		}
		l.release(fixture.Pods, answer{verdict: throttledByServer, latency: time.Millisecond, retryAfter: 3 * time.Second})
		began := time.Now()
		for _, kind := range []schema.GroupResource{fixture.Pods, fixture.Secrets} {
			if err := l.acquire(t.Context(), kind, false); err != nil {
				t.Fatal(err)
			}
		}
		if waited := time.Since(began); waited != 3*time.Second {
			t.Errorf("waited %s, want 3s", waited)
		}
	})
}

// TestKindThatIsToldToWaitHoldsBackNoOther: with and without a Retry-After.
func TestKindThatIsToldToWaitHoldsBackNoOther(t *testing.T) {
	for _, tc := range []struct {
		retryAfter, want time.Duration
	}{{30 * time.Second, 30 * time.Second}, {0, firstRest}, {time.Hour, MostPause}} {
		synctest.Test(t, func(t *testing.T) {
			l := NewLimiter(8)
			acquire := func(kind schema.GroupResource) error { return l.acquire(t.Context(), kind, false) }
			if err := acquire(fixture.Gadgets); err != nil {
				t.Fatal(err)
			}
			called := make(chan types.UID, 2)
			l.resume = func(uid types.UID) { called <- uid }
			l.release(fixture.Gadgets, answer{verdict: throttledByKind, latency: time.Millisecond, retryAfter: tc.retryAfter})
			began := time.Now()
			if err := acquire(fixture.Gadgets); !IsBusy(err) {
				t.Errorf("a request to who asked for quiet: %v", err)
			}
			if err := acquire(fixture.Pods); err != nil || time.Since(began) != 0 {
				t.Errorf("another kind: %v after %s", err, time.Since(began))
			}
			l.PutOff(fixture.Gadgets, "a")
			l.PutOff(fixture.Gadgets, "b")
			l.PutOff(fixture.Gadgets, "a")
			if uid := <-called; uid != "a" || time.Since(began) != tc.want {
				t.Errorf("%s is called back after %s, want a after %s", uid, time.Since(began), tc.want)
			}
			// One good answer, and all is as it was.
			l.Arrived("a")
			if err := acquire(fixture.Gadgets); err != nil {
				t.Fatal(err)
			}
			l.release(fixture.Gadgets, like(fine, time.Millisecond))
			if uid := <-called; uid != "b" {
				t.Errorf("%s is called back, want b", uid)
			}
			l.Arrived("b")
			l.release(fixture.Pods, like(fine, time.Millisecond))
			l.empty(t)
		})
	}
}

// TestKindThatHangsHoldsAQuarter of the places when it never was well, and takes none from the
// others when it was.
func TestKindThatHangsHoldsAQuarter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLimiter(64)
		run(l, fixture.Pods, 3000, like(fine, 10*time.Millisecond))
		run(l, fixture.Secrets, 3000, like(fine, 10*time.Millisecond))
		var hung sync.WaitGroup
		for _, kind := range []schema.GroupResource{fixture.Gadgets, fixture.Secrets} {
			hung.Go(func() {
				want := 16
				if kind == fixture.Secrets {
					want = 64
				}
				if got := run(l, kind, 200, like(fine, 20*time.Second)); got > want {
					t.Errorf("%d requests about %s at once, want %d", got, kind, want)
				}
			})
		}
		<-time.After(time.Second)
		if got := run(l, fixture.Pods, 3000, like(fine, 10*time.Millisecond)); got < 47 || got > 48 {
			t.Errorf("%d requests about others at once, want 48 of 64", got)
		}
		hung.Wait()
		l.empty(t)
	})
}

// TestKindsThatHangLeavePlacesToThoseThatFailLess: one that was slow once finds out that it is well
// again while the requests of others hang, however many kinds that is.
func TestKindsThatHangLeavePlacesToThoseThatFailLess(t *testing.T) {
	for _, hung := range []int{1, 10} {
		synctest.Test(t, func(t *testing.T) {
			l := NewLimiter(64)
			under := 0
			for i := range hung {
				kind := schema.GroupResource{Resource: fmt.Sprint("hangs", i)}
				for l.acquireNow(kind) {
					under++
					l.isLate(kind, false)
				}
			}
			// The kind that fills the last place had sent a few at once, and each may find out.
			if most := 64 + 15 + hung; under > most {
				t.Errorf("%d requests hang, want at most %d", under, most)
			}
			if err := l.acquire(t.Context(), fixture.Pods, false); err != nil {
				t.Fatal(err)
			}
			l.release(fixture.Pods, answer{verdict: throttledByKind, latency: time.Millisecond, retryAfter: time.Second})
			<-time.After(time.Second)
			for range 100 {
				if !l.acquireNow(fixture.Pods) {
					t.Fatal("there is no place for a kind that answers again")
				}
				l.release(fixture.Pods, like(fine, time.Millisecond))
			}
		})
	}
}

// acquireNow takes a place if there is one.
func (l *Limiter) acquireNow(kind schema.GroupResource) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.shareLocked(kind)
	room := l.roomLocked(s)
	if room {
		l.takeLocked(s)
	}
	return room
}

// TestOnlyThePatientWaitForAFailingKind, and they not long, nor when it is known to be of no use.
func TestOnlyThePatientWaitForAFailingKind(t *testing.T) {
	for _, tc := range []struct {
		name    string
		rests   time.Duration
		patient bool
		want    time.Duration
		busy    bool
	}{
		{"a worker", 2 * time.Second, false, 0, true},
		{"who has nothing else to do", 2 * time.Second, true, 2 * time.Second, false},
		{"for something that rests longer", time.Minute, true, 0, true},
		{"for something that stays full", 0, true, patience, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := NewLimiter(4) // of which those that fail have one
			if err := l.acquire(t.Context(), fixture.Pods, false); err != nil {
				t.Fatal(err)
			}
			if tc.rests > 0 {
				l.release(fixture.Pods, answer{verdict: throttledByKind, latency: time.Millisecond, retryAfter: tc.rests})
			} else {
				l.isLate(fixture.Pods, false) // and it is not given back
			}
			began := time.Now()
			err := l.acquire(t.Context(), fixture.Pods, tc.patient)
			if took := time.Since(began); took != tc.want || IsBusy(err) != tc.busy || !tc.busy && err != nil {
				t.Errorf("%s: %v after %s, want %s", tc.name, err, took, tc.want)
			}
		})
	}
}

// TestFailingKindsTakeTurns: one with thousands of objects leaves places to one with few.
func TestFailingKindsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLimiter(64)
		kinds := []schema.GroupResource{fixture.Gadgets, fixture.Secrets, fixture.Pods}
		called := map[schema.GroupResource]int{} // guarded by the limiter
		l.resume = func(uid types.UID) { called[l.called[uid].kind]++ }
		for _, kind := range kinds {
			if err := l.acquire(t.Context(), kind, false); err != nil {
				t.Fatal(err)
			}
			l.release(kind, answer{verdict: throttledByKind, latency: time.Millisecond, retryAfter: time.Second})
			for i := range 1000 {
				l.PutOff(kind, types.UID(fmt.Sprint(kind, i)))
			}
		}
		<-time.After(2 * time.Second)
		l.mu.Lock()
		defer l.mu.Unlock()
		for _, kind := range kinds {
			if n := called[kind]; n < 5 || n > 6 {
				t.Errorf("%d objects of %s are called back, want a third of 16", n, kind)
			}
		}
	})
}

// TestKindWhoseRequestsFailIsLeftAlone ever longer, but not for one that fails among others.
func TestKindWhoseRequestsFailIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLimiter(64)
		for range 100 {
			run(l, fixture.Pods, 15, like(unanswered, time.Millisecond))
			run(l, fixture.Pods, 1, like(fine, time.Millisecond))
		}
		if why := l.shares[fixture.Pods].failing; why != "" {
			t.Errorf("requests about a kind whose objects sometimes fail %s", why)
		}
		began, sent := time.Now(), 0
		for time.Since(began) < time.Minute {
			err := l.acquire(t.Context(), fixture.Secrets, false)
			if IsBusy(err) {
				<-time.After(10 * time.Millisecond)
				continue
			}
			sent++
			l.release(fixture.Secrets, like(unanswered, time.Millisecond))
		}
		if sent < 20 || sent > 40 {
			t.Errorf("%d requests in a minute about a kind that always fails", sent)
		}
	})
}

// TestObjectThatNeedsNothingAnyMoreKeepsNoPlace: it was called back, and its owner is back
// meanwhile.
func TestObjectThatNeedsNothingAnyMoreKeepsNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLimiter(8)
		if err := l.acquire(t.Context(), fixture.Pods, false); err != nil {
			t.Fatal(err)
		}
		l.release(fixture.Pods, answer{verdict: throttledByKind, latency: time.Millisecond, retryAfter: time.Second})
		called := make(chan types.UID, 100)
		l.resume = func(uid types.UID) { called <- uid }
		for i := range 100 {
			l.PutOff(fixture.Pods, types.UID(fmt.Sprint(i)))
		}
		for range 100 {
			l.Arrived(<-called)
			l.Left()
		}
		l.empty(t)
	})
}

// empty makes sure that nothing is left under way, called back or waited for.
func (l *Limiter) empty(t *testing.T) {
	t.Helper()
	if l.well != 0 || l.spared != 0 || l.ill != 0 || l.late != 0 || len(l.called) != 0 || l.calls.Load() != 0 || len(l.turns) != 0 {
		t.Errorf("when all is over: %d, %d and %d under way, %d of %d called back, %d wait", l.well, l.ill, l.late, len(l.called), l.calls.Load(), len(l.turns))
	}
	for kind, s := range l.shares {
		if s.under != 0 || s.spared != 0 || s.late != 0 || s.called != 0 || s.wantedLocked() {
			t.Errorf("when all is over: %s has %d under way, %d late, %d called back", kind, s.under, s.late, s.called)
		}
	}
}

func TestGivingUpWaitingLosesNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLimiter(leastLimit)
		if err := l.acquire(t.Context(), fixture.Pods, true); err != nil {
			t.Fatal(err)
		}
		for range 100 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			if err := l.acquire(ctx, fixture.Pods, true); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("acquire from a full limiter: %v", err)
			}
			cancel()
		}
		l.release(fixture.Pods, like(fine, time.Millisecond))
		l.empty(t)
		if err := l.acquire(t.Context(), fixture.Pods, true); err != nil {
			t.Errorf("acquire from an empty limiter: %v", err)
		}
	})
}

// TestPlacesAreNeitherLostNorMade: many kinds, answered in every way, with callers of every sort.
func TestPlacesAreNeitherLostNorMade(t *testing.T) {
	const n = 20_000
	seed := rand.Uint64()
	t.Logf("seed %d, %d requests", seed, n)
	synctest.Test(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(seed, 0))
		l := NewLimiter(16)
		work := make(chan func(), n)
		send := func(kind schema.GroupResource, patient bool, a answer, uid types.UID) func() {
			return func() {
				l.Arrived(uid)
				defer l.Left()
				take := func() error { return l.acquire(t.Context(), kind, patient) }
				if a.spare {
					take = func() error { return l.acquireSpare(t.Context(), kind) }
				}
				if err := take(); err != nil {
					if !patient && !a.spare {
						l.PutOff(kind, uid)
					}
					return
				}
				late := time.AfterFunc(time.Duration(l.slow.Load()), func() { l.isLate(kind, a.spare) })
				<-time.After(a.latency)
				a.late = !late.Stop()
				l.release(kind, a)
			}
		}
		var left atomic.Int64
		again := map[types.UID]func(){}
		l.resume = func(uid types.UID) { work <- again[uid] }
		for i := range n {
			kind := schema.GroupResource{Resource: fmt.Sprint("kind", random.IntN(5))}
			a := like([]verdict{fine, fine, fine, fine, fine, fine, unanswered, throttledByKind, throttledByServer, noVerdict}[random.IntN(10)],
				time.Duration(random.ExpFloat64()*float64(20*time.Millisecond)))
			if kind.Resource == "kind0" {
				a.latency *= 50
			}
			if a.verdict == throttledByServer && random.IntN(50) > 0 {
				a.verdict = fine
			}
			a.spare = random.IntN(4) == 0
			uid := types.UID(fmt.Sprint(i))
			again[uid] = send(kind, random.IntN(3) == 0, a, uid)
			work <- again[uid]
		}
		var workers sync.WaitGroup
		stop := make(chan struct{})
		for range 32 {
			workers.Go(func() {
				for {
					select {
					case f := <-work:
						left.Add(1)
						f()
						left.Add(-1)
					case <-stop:
						return
					}
				}
			})
		}
		for len(work) > 0 || left.Load() > 0 || l.calls.Load() > 0 {
			<-time.After(time.Second)
		}
		close(stop)
		workers.Wait()
		synctest.Wait()
		l.empty(t)
	})
}
