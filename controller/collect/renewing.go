package collect

import (
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
)

// renewAfter is how many objects must have waited at once for a queue to be exchanged when nothing
// is left of them.
const renewAfter = 10_000

// renewing is a queue of client-go that is exchanged for a new one when much has waited in it and
// nothing is left: its maps, and those of its metrics, never shrink.
type renewing struct {
	make func(workqueue.Queue[types.UID]) *workqueue.Typed[types.UID]
	// order makes the order of a queue. Each queue has its own: one that is left behind looks into
	// it once more.
	order func() workqueue.Queue[types.UID]
	most  int64

	mu      sync.RWMutex // is held for reading by who puts something into the queue, for writing by who exchanges it
	current *workqueue.Typed[types.UID]
	out     atomic.Int64 // handed out, and not done
	peak    atomic.Int64 // waited at once, since the queue was exchanged
	down    atomic.Bool
}

var _ workqueue.TypedInterface[types.UID] = (*renewing)(nil)

func newRenewing(name string, most int64, order func() workqueue.Queue[types.UID]) *renewing {
	r := &renewing{order: order, most: most, make: func(q workqueue.Queue[types.UID]) *workqueue.Typed[types.UID] {
		return workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[types.UID]{Name: name, Queue: q})
	}}
	r.current = r.make(&counted{order(), r})
	return r
}

// counted tells the queue around it what waits, and what was handed out: under the lock of
// client-go's queue, so that nothing comes in between.
type counted struct {
	workqueue.Queue[types.UID]
	r *renewing
}

// Push implements workqueue.Queue.
func (c *counted) Push(uid types.UID) {
	c.Queue.Push(uid)
	c.r.peak.Store(max(c.r.peak.Load(), int64(c.Len())))
}

// Pop implements workqueue.Queue.
func (c *counted) Pop() types.UID {
	c.r.out.Add(1)
	return c.Queue.Pop()
}

// Add implements workqueue.TypedInterface.
func (r *renewing) Add(uid types.UID) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	r.current.Add(uid)
}

// Len implements workqueue.TypedInterface.
func (r *renewing) Len() int {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.current.Len()
}

// Get implements workqueue.TypedInterface. A queue that was left behind is shut down: whoever waits
// in it comes to the new one.
func (r *renewing) Get() (uid types.UID, shutdown bool) {
	for {
		r.mu.RLock()
		q := r.current
		r.mu.RUnlock()
		if uid, left := q.Get(); !left {
			return uid, false
		}
		if r.down.Load() {
			return "", true
		}
	}
}

// Done implements workqueue.TypedInterface.
func (r *renewing) Done(uid types.UID) {
	r.mu.RLock()
	r.current.Done(uid)
	r.out.Add(-1)
	idle := r.idle()
	r.mu.RUnlock()
	if !idle {
		return
	}
	r.mu.Lock()
	if !r.idle() || r.down.Load() {
		r.mu.Unlock()
		return
	}
	left := r.current
	r.current = r.make(&counted{r.order(), r})
	r.peak.Store(0)
	r.mu.Unlock()
	left.ShutDown()
}

// idle tells whether the queue is to be exchanged: nothing waits in it, and no worker will give
// anything back to it. What is handed out is counted before it stops waiting, so that one that is
// handed out between the two looks is seen by the second.
func (r *renewing) idle() bool {
	return r.peak.Load() >= r.most && r.current.Len() == 0 && r.out.Load() == 0
}

// ShutDown implements workqueue.TypedInterface.
func (r *renewing) ShutDown() { r.last().ShutDown() }

// ShutDownWithDrain implements workqueue.TypedInterface.
func (r *renewing) ShutDownWithDrain() { r.last().ShutDownWithDrain() }

// ShuttingDown implements workqueue.TypedInterface.
func (r *renewing) ShuttingDown() bool { return r.down.Load() }

// last is the queue after which no other comes.
func (r *renewing) last() *workqueue.Typed[types.UID] {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.down.Store(true)
	return r.current
}
