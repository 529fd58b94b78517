package request

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
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
