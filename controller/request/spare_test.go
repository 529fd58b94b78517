package request

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/internal/testkit/fixture"
)

// backFill sends spare requests, a hundred at once as far as it may, each answered after what
// latency says, until it is stopped.
type backFill struct {
	latency atomic.Int64
	crowd   time.Duration // what each that is under way adds
	under   atomic.Int64
	sent    sync.WaitGroup
}

func (b *backFill) run(ctx context.Context, l *Limiter, kind schema.GroupResource) {
	for range 100 {
		b.sent.Go(func() {
			for l.acquireSpare(ctx, kind) == nil {
				b.under.Add(1)
				latency := time.Duration(b.latency.Load()) + b.crowd*time.Duration(b.under.Load())
				late := time.AfterFunc(time.Duration(l.slow.Load()), func() { l.isLate(kind, true) })
				<-time.After(latency)
				b.under.Add(-1)
				l.release(kind, answer{verdict: fine, latency: latency, late: !late.Stop(), spare: true})
			}
		})
	}
}

// TestSparesAloneGrowToHalfOfThePlaces: nothing else has to happen, and others find room at once.
func TestSparesAloneGrowToHalfOfThePlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLimiter(64)
		ctx, cancel := context.WithCancel(t.Context())
		var b backFill
		b.latency.Store(int64(10 * time.Millisecond))
		b.run(ctx, l, fixture.ConfigMaps)
		synctest.Wait()
		if got := b.under.Load(); got != startAllowance {
			t.Errorf("%d at once to begin with, want %d", got, startAllowance)
		}
		<-time.After(time.Second + time.Millisecond)
		synctest.Wait()
		if got := b.under.Load(); got != 32 {
			t.Errorf("%d at once after a second, want half of 64", got)
		}
		for range startLimit {
			if !l.acquireNow(fixture.Pods) {
				t.Fatal("others have no room")
			}
		}
		for range startLimit {
			l.release(fixture.Pods, like(fine, 10*time.Millisecond))
		}
		cancel()
		b.sent.Wait()
		l.empty(t)
	})
}

// TestSparesMakeWay for everybody else, whatever kind they want, and take up what these leave.
func TestSparesMakeWay(t *testing.T) {
	for _, kind := range []schema.GroupResource{fixture.ConfigMaps, fixture.Pods} {
		synctest.Test(t, func(t *testing.T) {
			l := NewLimiter(64)
			run(l, kind, 3000, like(fine, 10*time.Millisecond)) // there are 64 places for it
			ctx, cancel := context.WithCancel(t.Context())
			var b backFill
			b.latency.Store(int64(10 * time.Millisecond))
			b.run(ctx, l, fixture.ConfigMaps)
			<-time.After(time.Second + time.Millisecond)
			began := time.Now()
			var others sync.WaitGroup
			for range 64 {
				others.Go(func() {
					if err := l.acquire(ctx, kind, true); err != nil {
						t.Error(err)
					}
				})
			}
			others.Wait()
			if took := time.Since(began); took > 10*time.Millisecond {
				t.Errorf("the last of 64 others waited %s, and spares take 10 ms", took)
			}
			<-time.After(time.Second)
			synctest.Wait()
			if got := b.under.Load(); got != 0 {
				t.Errorf("%d have places while others have all", got)
			}
			for range 64 {
				l.release(kind, like(fine, 10*time.Millisecond))
			}
			synctest.Wait()
			if got := b.under.Load(); got != 32 {
				t.Errorf("%d at once when others have gone, want 32", got)
			}
			cancel()
			b.sent.Wait()
			l.empty(t)
		})
	}
}

// TestSparesGoOnBesideAFewOthers, however few are allowed: else it would not be found out that more
// are.
func TestSparesGoOnBesideAFewOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLimiter(64)
		for range 4 {
			if err := l.acquire(t.Context(), fixture.Pods, true); err != nil {
				t.Fatal(err)
			}
		}
		l.allowed.limit = 1
		if !has(l.spareSoon(t.Context(), fixture.ConfigMaps)) {
			t.Error("nothing is left of 64 places, of which four are taken")
		}
		waits := l.spareSoon(t.Context(), fixture.ConfigMaps)
		if has(waits) {
			t.Error("one is allowed, and two go")
		}
		l.releaseSpare(fixture.ConfigMaps, like(fine, time.Millisecond))
		if !has(waits) {
			t.Error("one waits for nothing")
		}
	})
}

// TestSparesMakeWayWhenAnswersComeLate, before anybody says 429, and come back when that is over.
func TestSparesMakeWayWhenAnswersComeLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLimiter(64)
		ctx, cancel := context.WithCancel(t.Context())
		var b backFill
		b.latency.Store(int64(10 * time.Millisecond))
		b.run(ctx, l, fixture.ConfigMaps)
		for _, step := range []struct {
			latency     time.Duration
			after       time.Duration
			least, most int64
		}{
			{10 * time.Millisecond, 2 * time.Second, 32, 32},
			{25 * time.Millisecond, 2 * time.Second, 32, 32},
			{50 * time.Millisecond, 2 * time.Second, 1, 2},
			{10 * time.Millisecond, 2 * time.Second, 32, 32},
			{50 * time.Millisecond, 2 * time.Second, 1, 2},
			{50 * time.Millisecond, relearnAfter + 20*time.Second, 32, 32}, // it has nothing to do with what is under way
		} {
			b.latency.Store(int64(step.latency))
			<-time.After(step.after + time.Millisecond)
			synctest.Wait()
			if got := b.under.Load(); got < step.least || got > step.most {
				t.Errorf("%d at once when answers have taken %s for some time, want %d to %d", got, step.latency, step.least, step.most)
			}
		}
		before := l.allowed.limit
		l.release(fixture.Pods, like(throttledByServer, time.Millisecond).of(l, fixture.Pods))
		if l.allowed.limit != before/2 {
			t.Errorf("%.1f at once after a 429, want half of %.1f", l.allowed.limit, before)
		}
		cancel()
		b.sent.Wait()
		l.empty(t)
	})
}

// TestSparesOfAKindThatIsSlowHaveAFewPlaces, half of a quarter: a webhook of the kind may be what
// is slow, and one at a time would get hardly anything done. Where all has become slow, one or two
// at a time are what is left to them.
func TestSparesOfAKindThatIsSlowHaveAFewPlaces(t *testing.T) {
	for name, c := range map[string]struct {
		before      time.Duration // what answers take to begin with
		least, most int64
	}{
		"always slow": {500 * time.Millisecond, 8, 8},
		"slow by now": {10 * time.Millisecond, 1, 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := NewLimiter(64)
			run(l, fixture.Pods, 100, like(fine, 10*time.Millisecond)) // others are quick
			ctx, cancel := context.WithCancel(t.Context())
			var b backFill
			b.latency.Store(int64(c.before))
			b.run(ctx, l, fixture.ConfigMaps)
			<-time.After(3 * time.Second)
			b.latency.Store(int64(500 * time.Millisecond))
			for range 10 {
				<-time.After(2*time.Second + time.Millisecond)
				synctest.Wait()
				if got := b.under.Load(); got < c.least || got > c.most {
					t.Errorf("%s: %d at once, want %d to %d", name, got, c.least, c.most)
				}
			}
			cancel()
			b.sent.Wait()
			l.empty(t)
		})
	}
}

// TestSparesDoNotMakeRoomForThemselves: where answers take as long as there are many, more of them
// get no more done, and others wait longer.
func TestSparesDoNotMakeRoomForThemselves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLimiter(200)
		ctx, cancel := context.WithCancel(t.Context())
		b := backFill{crowd: 2 * time.Millisecond}
		b.run(ctx, l, fixture.ConfigMaps)
		for range 300 {
			<-time.After(time.Second)
			synctest.Wait()
			if got := b.under.Load(); got < startAllowance/2 || got > (slowAnswer+1)*startAllowance {
				t.Errorf("%d at once, want %d or somewhat more", got, startAllowance)
			}
		}
		cancel()
		b.sent.Wait()
		l.empty(t)
	})
}

// TestOneAnswerAmongOthersCutsNothing, be it late, or so early that all others seem to be late: how
// soon the others come says how much the API server has to do.
func TestOneAnswerAmongOthersCutsNothing(t *testing.T) {
	for _, single := range []time.Duration{time.Second, time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			b := newAllowance(64)
			for i := range 2000 {
				latency := time.Duration(1+i%2) * 10 * time.Millisecond
				if i%20 == 0 {
					latency = single
				}
				b.answered(latency, true)
				<-time.After(time.Millisecond)
			}
			if b.limit != 32 {
				t.Errorf("%.1f are allowed with some that take %s, want 32", b.limit, single)
			}
		})
	}
}

// TestNoObjectWaitsForLongForAFailingKind, be it for a place that is left over.
func TestNoObjectWaitsForLongForAFailingKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLimiter(64)
		l.release(fixture.Pods, answer{verdict: throttledByKind, retryAfter: time.Minute}.of(l, fixture.Pods))
		began := time.Now()
		if err := l.acquireSpare(t.Context(), fixture.Pods); !IsBusy(err) || time.Since(began) != patience {
			t.Errorf("%v after %s", err, time.Since(began))
		}
		l.empty(t)
	})
}

// spareSoon waits for a spare place in another goroutine, and tells when it has it, or why not.
func (l *Limiter) spareSoon(ctx context.Context, kind schema.GroupResource) <-chan error {
	got := make(chan error, 1)
	go func() { got <- l.acquireSpare(ctx, kind) }()
	synctest.Wait()
	return got
}

// has tells whether an answer is there, and good.
func has(got <-chan error) bool {
	synctest.Wait()
	select {
	case err := <-got:
		return err == nil
	default:
		return false
	}
}

// TestSpareFindsOutWhetherAKindIsWellAgain: no other part may ever ask about it. When it has
// rested, one at a time is sent.
func TestSpareFindsOutWhetherAKindIsWellAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLimiter(64)
		if err := l.acquire(t.Context(), fixture.Pods, true); err != nil {
			t.Fatal(err)
		}
		l.release(fixture.Pods, answer{verdict: throttledByKind, latency: time.Millisecond, retryAfter: 3 * time.Second})
		began := time.Now()
		first, second := l.spareSoon(t.Context(), fixture.Pods), l.spareSoon(t.Context(), fixture.Pods)
		if has(first) || has(second) {
			t.Fatal("a kind that rests is asked")
		}
		if err := <-first; err != nil || time.Since(began) != 3*time.Second || has(second) {
			t.Errorf("%v after %s, want one of two after 3s", err, time.Since(began))
		}
		l.releaseSpare(fixture.Pods, like(fine, time.Millisecond))
		if !has(second) {
			t.Error("it is well again, and is left alone")
		}
		l.releaseSpare(fixture.Pods, like(fine, time.Millisecond))
		l.empty(t)
	})
}

// TestSpareFindsOutWhenAnObjectThatWasCalledBackNeedsNothing: it had the place in which it is found
// out.
func TestSpareFindsOutWhenAnObjectThatWasCalledBackNeedsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLimiter(64)
		if err := l.acquire(t.Context(), fixture.Pods, true); err != nil {
			t.Fatal(err)
		}
		called := make(chan types.UID, 1)
		l.CallBack(func(uid types.UID) { called <- uid })
		l.release(fixture.Pods, answer{verdict: throttledByKind, latency: time.Millisecond, retryAfter: time.Second})
		l.PutOff(fixture.Pods, "a")
		got := l.spareSoon(t.Context(), fixture.Pods)
		uid := <-called
		if has(got) {
			t.Error("what was put off is first")
		}
		l.Arrived(uid)
		l.Left()
		if !has(got) {
			t.Error("nobody asks about the kind, and nobody finds out")
		}
	})
}

// TestObjectsOfAFailingKindKeepNoSparePlaceFromOthers, though they wait for it.
func TestObjectsOfAFailingKindKeepNoSparePlaceFromOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLimiter(64)
		if err := l.acquire(t.Context(), fixture.Gadgets, true); err != nil {
			t.Fatal(err)
		}
		l.release(fixture.Gadgets, answer{verdict: throttledByKind, latency: time.Millisecond, retryAfter: time.Minute})
		l.PutOff(fixture.Gadgets, "a")
		if !has(l.spareSoon(t.Context(), fixture.Pods)) {
			t.Error("a failing kind has back-fill of another stand still")
		}
		l.releaseSpare(fixture.Pods, like(fine, time.Millisecond))
	})
}

// TestKindThatGoesAndComesBackHasOneShare: a spare may wait for it meanwhile.
func TestKindThatGoesAndComesBackHasOneShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLimiter(64)
		l.release(fixture.Pods, answer{verdict: throttledByServer, retryAfter: time.Second}.of(l, fixture.Pods))
		got := l.spareSoon(t.Context(), fixture.Gadgets)
		l.forget(func(schema.GroupResource) bool { return false })
		if err := <-got; err != nil {
			t.Fatal(err)
		}
		l.releaseSpare(fixture.Gadgets, like(fine, time.Millisecond))
		l.empty(t)
	})
}

// of takes the place of the request that it is the answer to.
func (a answer) of(l *Limiter, kind schema.GroupResource) answer {
	l.acquireNow(kind)
	return a
}

func (l *Limiter) releaseSpare(kind schema.GroupResource, a answer) {
	a.spare = true
	l.release(kind, a)
}
