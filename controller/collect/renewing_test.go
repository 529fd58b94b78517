package collect

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
)

func inAnyOrder() workqueue.Queue[types.UID] { return workqueue.DefaultQueue[types.UID]() }

// TestQueueGivesBackWhatItTookForManyObjects: they came and went, and what is left is as small as
// before.
func TestQueueGivesBackWhatItTookForManyObjects(t *testing.T) {
	const n, most = 150_000, 2 << 20
	q := newQueue(newRenewing("given-back", renewAfter, inAnyOrder))
	defer q.ShutDown()
	before := heap()
	for i := range n {
		q.Add(types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", i)))
	}
	full := heap()
	for range n {
		uid, _ := q.Get()
		q.Forget(uid)
		q.Done(uid)
	}
	after := heap()
	t.Logf("%d objects: %.1f MB while they wait, %.1f MB when all are done", n, float64(full-before)/1e6, float64(after-before)/1e6)
	if after-before > most {
		t.Errorf("%d bytes are left of %d objects, want at most %d", after-before, n, most)
	}
	if full-before < most {
		t.Errorf("only %d bytes for %d objects that wait: nothing was measured", full-before, n)
	}
}

func heap() int64 {
	runtime.GC()
	runtime.GC() // what finalizers hold no more
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestQueueThatIsExchangedLosesNothing: whatever was added is handed out after that, and to one
// worker at a time, while the queue is exchanged as often as it can be.
func TestQueueThatIsExchangedLosesNothing(t *testing.T) {
	const objects, adds, adders, workers = 20, 5_000, 4, 8
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d, %d adds", seed, adds*adders)
	q := newRenewing("exchanged", 1, inAnyOrder)
	var wanted, seen, busy [objects]atomic.Int64
	var exchanged, handed atomic.Int64
	var working, adding sync.WaitGroup
	for range workers {
		working.Go(func() {
			for last := q.now(); ; {
				uid, down := q.Get()
				if down {
					return
				}
				if now := q.now(); now != last {
					exchanged.Add(1)
					last = now
				}
				i := uid[0] - 'a'
				if busy[i].Add(1) != 1 {
					t.Errorf("%s was handed to two at a time", uid)
				}
				seen[i].Store(wanted[i].Load())
				handed.Add(1)
				busy[i].Add(-1)
				q.Done(uid)
			}
		})
	}
	for a := range adders {
		adding.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(a)))
			for range adds {
				i := random.IntN(objects)
				wanted[i].Add(1)
				q.Add(types.UID(rune('a' + i)))
				if random.IntN(8) == 0 {
					runtime.Gosched()
				}
			}
		})
	}
	adding.Wait()
	q.ShutDown() // what waits is handed out still
	working.Wait()
	for i := range objects {
		if seen[i].Load() != wanted[i].Load() {
			t.Errorf("%c was wanted %d times, and last looked at at the %dth", 'a'+i, wanted[i].Load(), seen[i].Load())
		}
	}
	if exchanged.Load() == 0 {
		t.Error("the queue was never exchanged")
	}
	t.Logf("handed out %d times", handed.Load())
}

// now is the queue that is in use.
func (r *renewing) now() *workqueue.Typed[types.UID] {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.current
}
