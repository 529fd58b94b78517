package request

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/internal/testkit/fixture"
)

// answer is what comes of a request, after a while.
type answer struct {
	verdict    verdict
	latency    time.Duration
	retryAfter time.Duration
}

func like(v verdict, latency time.Duration) answer { return answer{verdict: v, latency: latency} }

// send makes a request that has its place. done is called when it is answered.
func (l *Limiter) send(p *place, a answer, done func()) {
	late := time.AfterFunc(isLong, func() { l.isLate(p) })
	<-time.After(a.latency) // on the bubble's clock
	late.Stop()
	done()
	l.release(p, a.verdict, a.latency, a.retryAfter)
}

// answered makes a request, and wants a place for it at once.
func (l *Limiter) answered(t *testing.T, kind schema.GroupResource, a answer) {
	t.Helper()
	began := time.Now()
	p, err := l.acquire(t.Context(), kind, false)
	if err != nil || time.Since(began) > 0 {
		t.Fatalf("no place for %s: %v", kind, err)
	}
	l.release(p, a.verdict, a.latency, a.retryAfter)
}

// run sends n requests about a kind through a limiter from twice as many clients as it lets through,
// each answered like a, and returns the most that were under way at once.
func run(l *Limiter, kind schema.GroupResource, n int, a answer) int {
	most, under := 0, 0
	var mu sync.Mutex
	var clients sync.WaitGroup
	for range min(n, 2*l.Places()) {
		clients.Go(func() {
			for {
				mu.Lock()
				n--
				over := n < 0
				mu.Unlock()
				if over {
					return
				}
				p, err := l.acquire(context.Background(), kind, true)
				if err != nil {
					continue
				}
				mu.Lock()
				under++
				most = max(most, under)
				mu.Unlock()
				l.send(p, a, func() {
					mu.Lock()
					defer mu.Unlock()
					under--
				})
			}
		})
	}
	clients.Wait()
	return most
}

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
		l.answered(t, fixture.Pods, answer{throttledByServer, time.Millisecond, 3 * time.Second})
		began := time.Now()
		for _, kind := range []schema.GroupResource{fixture.Pods, fixture.Secrets} {
			if _, err := l.acquire(t.Context(), kind, false); err != nil {
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
			called := make(chan types.UID, 2)
			l.CallBack = func(uid types.UID) { called <- uid }
			l.answered(t, fixture.Gadgets, answer{throttledByKind, time.Millisecond, tc.retryAfter})
			began := time.Now()
			if _, err := l.acquire(t.Context(), fixture.Gadgets, false); !IsBusy(err) {
				t.Errorf("a request to who asked for quiet: %v", err)
			}
			l.answered(t, fixture.Pods, like(fine, time.Millisecond))
			l.PutOff(fixture.Gadgets, "a")
			l.PutOff(fixture.Gadgets, "a")
			if uid := <-called; uid != "a" || time.Since(began) != tc.want {
				t.Errorf("%s is called back after %s, want a after %s", uid, time.Since(began), tc.want)
			}
			// One good answer, and all is as it was.
			l.answered(t, fixture.Gadgets, like(fine, time.Millisecond))
			if why := l.Failing(fixture.Gadgets); why != "" {
				t.Error(why)
			}
			l.empty(t)
		})
	}
}

// TestKindThatHangsHoldsAQuarter of the places when it never was well, and no more than there are
// when it was. Others have all of theirs.
func TestKindThatHangsHoldsAQuarter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLimiter(64)
		run(l, fixture.Pods, 3000, like(fine, 10*time.Millisecond))
		run(l, fixture.Secrets, 3000, like(fine, 10*time.Millisecond))
		var hung sync.WaitGroup
		for kind, want := range map[schema.GroupResource]int{fixture.Gadgets: 16, fixture.Secrets: 64} {
			hung.Go(func() {
				if got := run(l, kind, 200, like(fine, 20*time.Second)); got > want {
					t.Errorf("%d requests about %s at once, want %d", got, kind, want)
				}
			})
		}
		<-time.After(time.Second)
		if got := run(l, fixture.Pods, 3000, like(fine, 10*time.Millisecond)); got != 64 {
			t.Errorf("%d requests about others at once, want 64", got)
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
				for p := l.acquireNow(kind); p != nil; p = l.acquireNow(kind) {
					under++
					l.isLate(p)
				}
			}
			if most := 64 + hung; under > most {
				t.Errorf("%d requests hang, want at most %d", under, most)
			}
			l.answered(t, fixture.Pods, answer{throttledByKind, time.Millisecond, time.Second})
			<-time.After(time.Second)
			for range 100 {
				l.answered(t, fixture.Pods, like(fine, time.Millisecond))
			}
		})
	}
}

// acquireNow takes a place if there is one.
func (l *Limiter) acquireNow(kind schema.GroupResource) *place {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := &place{share: l.shareLocked(kind)}
	if !l.roomLocked(p.share, l.loadLocked()) {
		return nil
	}
	p.share.under++
	return p
}

// TestOnlyThePatientWaitForAFailingKind, and they not long, nor when many do so already.
func TestOnlyThePatientWaitForAFailingKind(t *testing.T) {
	for _, tc := range []struct {
		name    string
		rests   time.Duration
		patient bool
		others  int
		want    time.Duration
		busy    bool
	}{
		{"a worker", 2 * time.Second, false, 0, 0, true},
		{"who has nothing else to do", 2 * time.Second, true, 0, 2 * time.Second, false},
		{"beside others", time.Minute, true, 2, 0, true},
		{"for something that stays full", 0, true, 0, patience, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := NewLimiter(8) // of which those that fail have two
			if tc.rests > 0 {
				l.answered(t, fixture.Pods, answer{throttledByKind, time.Millisecond, tc.rests})
			} else {
				for p := l.acquireNow(fixture.Pods); p != nil; p = l.acquireNow(fixture.Pods) {
					l.isLate(p) // and it is not given back
				}
			}
			for range tc.others {
				go func() { _, _ = l.acquire(t.Context(), fixture.Pods, true) }()
			}
			synctest.Wait()
			began := time.Now()
			_, err := l.acquire(t.Context(), fixture.Pods, tc.patient)
			if took := time.Since(began); took != tc.want || IsBusy(err) != tc.busy || !tc.busy && err != nil {
				t.Errorf("%s: %v after %s, want %s", tc.name, err, took, tc.want)
			}
		})
	}
}

// TestWorkersThatWaitAreFreeWhenTheirKindFails: they came while it was well.
func TestWorkersThatWaitAreFreeWhenTheirKindFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLimiter(8)
		first, second := l.acquireNow(fixture.Pods), l.acquireNow(fixture.Pods)
		began := time.Now()
		go func() { l.isLate(first); l.isLate(second) }()
		if _, err := l.acquire(t.Context(), fixture.Pods, false); !IsBusy(err) || time.Since(began) > tickEvery {
			t.Errorf("%v after %s", err, time.Since(began))
		}
	})
}

// TestFailingKindsAreCalledBackEach: one with thousands of objects keeps none from one with few.
func TestFailingKindsAreCalledBackEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLimiter(64)
		kinds := []schema.GroupResource{fixture.Gadgets, fixture.Secrets, fixture.Pods}
		called := make(chan string, 100)
		l.CallBack = func(uid types.UID) { called <- strings.TrimRight(string(uid), " 0123456789") }
		for _, kind := range kinds {
			l.answered(t, kind, answer{throttledByKind, time.Millisecond, time.Second})
			for i := range 1000 {
				l.PutOff(kind, types.UID(fmt.Sprint(kind, i)))
			}
		}
		<-time.After(time.Second + time.Millisecond)
		got := map[string]int{}
		for range len(called) {
			got[<-called]++
		}
		for _, kind := range kinds {
			if n := got[kind.String()]; n != 16 {
				t.Errorf("%d objects of %s are called back, want as many as it may have under way", n, kind)
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
			p, err := l.acquire(t.Context(), fixture.Secrets, false)
			if IsBusy(err) {
				<-time.After(10 * time.Millisecond)
				continue
			}
			sent++
			l.release(p, unanswered, time.Millisecond, 0)
		}
		if sent < 20 || sent > 40 {
			t.Errorf("%d requests in a minute about a kind that always fails", sent)
		}
	})
}

// empty makes sure that nothing is left under way or waited for.
func (l *Limiter) empty(t *testing.T) {
	t.Helper()
	l.mu.Lock() // a tick may still come
	defer l.mu.Unlock()
	if len(l.waiting) != 0 {
		t.Errorf("when all is over: %d wait", len(l.waiting))
	}
	for kind, s := range l.shares {
		if s.under != 0 || s.late != 0 || len(s.off) > 0 {
			t.Errorf("when all is over: %s has %d under way, %d late, %d off", kind, s.under, s.late, len(s.off))
		}
	}
}

func TestGivingUpWaitingLosesNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLimiter(leastLimit)
		first, second := l.acquireNow(fixture.Pods), l.acquireNow(fixture.Secrets)
		for range 100 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			if _, err := l.acquire(ctx, fixture.Pods, true); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("acquire from a full limiter: %v", err)
			}
			cancel()
		}
		for _, p := range []*place{first, second} {
			l.release(p, fine, time.Millisecond, 0)
		}
		l.empty(t)
	})
}

// TestKindThatIsNotServedAnyMoreIsForgotten, but not while something is under way.
func TestKindThatIsNotServedAnyMoreIsForgotten(t *testing.T) {
	l := NewLimiter(64)
	p := l.acquireNow(fixture.Gadgets)
	for range 2 {
		l.forget(func(schema.GroupResource) bool { return false })
		if _, known := l.shares[fixture.Gadgets]; known == p.over {
			t.Errorf("known %t, over %t", known, p.over)
		}
		if !p.over {
			l.release(p, fine, time.Millisecond, 0)
		}
	}
}

// TestPlacesAreNeitherLostNorMade: many kinds, answered in every way, with callers of every sort.
func TestPlacesAreNeitherLostNorMade(t *testing.T) {
	const n = 5_000
	seed := rand.Uint64()
	t.Logf("seed %d, %d requests", seed, n)
	synctest.Test(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(seed, 0))
		l := NewLimiter(16)
		work := make(chan func(), n)
		send := func(kind schema.GroupResource, patient bool, a answer, uid types.UID) func() {
			return func() {
				p, err := l.acquire(t.Context(), kind, patient)
				switch {
				case err == nil:
					l.send(p, a, func() {})
				case !patient:
					l.PutOff(kind, uid)
				}
			}
		}
		var left atomic.Int64
		again := map[types.UID]func(){}
		l.CallBack = func(uid types.UID) { work <- again[uid] }
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
		// Nobody runs while it looks: what is called back is nowhere for a moment.
		for synctest.Wait(); len(work) > 0 || left.Load() > 0 || putOff(l) > 0; synctest.Wait() {
			<-time.After(time.Second)
		}
		close(stop)
		workers.Wait()
		synctest.Wait()
		l.empty(t)
	})
}

// putOff is how many objects wait to be called back.
func putOff(l *Limiter) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.shares {
		n += len(s.off)
	}
	return n
}
