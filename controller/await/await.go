// Package await has what goroutines of all packages wait for: a pause, a change that many wait for,
// and the next item of a queue.
//
// A Change has a lock, under which nothing is called. The goroutines of Work are joined by their
// group. The package imports no other package of Weir.
package await

import (
	"context"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
)

// Pause waits for d. It returns the error of ctx if that ends first.
func Pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// Wake puts an element into a channel that has room for one, unless it has one already.
func Wake(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Change tells any number of goroutines that something has changed. A goroutine that calls Next
// before it looks misses no change. The zero value is ready. It must not be copied after first use.
type Change struct {
	mu   sync.Mutex
	next chan struct{} // nil: nobody waits
}

// Next returns a channel that the next Notify closes.
func (c *Change) Next() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next == nil {
		c.next = make(chan struct{})
	}
	return c.next
}

// Notify closes the channel that Next has returned since the last Notify.
func (c *Change) Notify() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next != nil {
		close(c.next)
		c.next = nil
	}
}

// Work calls work with each item of a queue, in n goroutines of a group, until the queue is shut
// down and empty. One goroutine at a time works on an item: if it is added meanwhile it comes
// again.
func Work[T comparable](group *sync.WaitGroup, n int, queue workqueue.TypedInterface[T], work func(T)) {
	for range n {
		group.Go(func() {
			for {
				item, closed := queue.Get()
				if closed {
					return
				}
				work(item)
				queue.Done(item)
			}
		})
	}
}
