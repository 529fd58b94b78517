// Package await has what goroutines of every room wait by: a time that may pass, a change that many
// wait for, and a queue of what is to be done.
//
// A Change has a lock of its own, under which nothing is called. The goroutines of Work are joined
// by whoever waits for their group. It imports nothing of ours.
package await

import (
	"context"
	"sync"
	"time"
)

// Pause waits; an error, that of ctx, if ctx ends first.
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

// Change tells any number of goroutines that something has changed. Whoever takes Next before
// looking at it misses none. The zero value is ready; it must not be copied once it is in use.
type Change struct {
	mu   sync.Mutex
	next chan struct{} // nil: it is not waited for
}

// Next is a channel that the next Notify closes.
func (c *Change) Next() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next == nil {
		c.next = make(chan struct{})
	}
	return c.next
}

// Notify wakes all who have taken Next since the last one.
func (c *Change) Notify() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next != nil {
		close(c.next)
		c.next = nil
	}
}
