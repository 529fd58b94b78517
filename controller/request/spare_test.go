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

	"github.com/weir-dev/weir/controller/fixture"
)

// TestSparePlacesAreWhatOthersLeave: half of what the API server grants stays free, those who wait for a place go first, and
// a kind in trouble is left alone.
func TestSparePlacesAreWhatOthersLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLimiter(64)
		kind := schema.GroupResource{Resource: "configmaps"}
		answered := answer{verdict: fine, latency: time.Millisecond}
		l.mu.Lock()
		l.shareLocked(kind).most = 64
		l.mu.Unlock()
		var got atomic.Int32
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range startLimit {
			wg.Go(func() {
				if l.acquireSpare(ctx, kind) == nil {
					got.Add(1)
				}
			})
		}
		synctest.Wait()
		if got.Load() != startLimit/2 {
			t.Errorf("%d of %d places are taken, want half", got.Load(), startLimit)
		}
		for range startLimit / 2 { // the others are for those who must
			if err := l.acquire(ctx, kind, true); err != nil {
				t.Fatal(err)
			}
		}
		waited := false
		wg.Go(func() { waited = l.acquire(ctx, kind, true) == nil })
		synctest.Wait()
		l.release(kind, answered)
		synctest.Wait()
		if got.Load() != startLimit/2 || !waited {
			t.Errorf("%d took what others wait for: %t", got.Load()-startLimit/2, !waited)
		}
		for range startLimit/2 + 1 {
			l.release(kind, answered)
		}
		synctest.Wait()
		if got.Load() <= startLimit/2 {
			t.Error("nobody got what was left over")
		}
		cancel()
		wg.Wait()
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

// TestSpareFindsOutWhetherAKindIsWellAgain: nobody else may ever ask about it. When it has rested, one at a time is sent.
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

// TestSpareFindsOutWhenAnObjectThatWasCalledBackNeedsNothing: it had the place in which it is found out.
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

// TestObjectsOfAKindInTroubleKeepNoSparePlaceFromOthers, though they wait for it.
func TestObjectsOfAKindInTroubleKeepNoSparePlaceFromOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLimiter(64)
		if err := l.acquire(t.Context(), fixture.Gadgets, true); err != nil {
			t.Fatal(err)
		}
		l.release(fixture.Gadgets, answer{verdict: throttledByKind, latency: time.Millisecond, retryAfter: time.Minute})
		l.PutOff(fixture.Gadgets, "a")
		if !has(l.spareSoon(t.Context(), fixture.Pods)) {
			t.Error("a kind in trouble has back-fill of another stand still")
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
	l.release(kind, a)
}
