package follow

import (
	"sync/atomic"
	"time"

	"github.com/weir-dev/weir/controller/await"
)

const (
	// restFactor times what a discovery took is the pause before the next one that a caller wants,
	// and longestPause the most. With 20 ms for a discovery, a burst of deletions makes five a
	// second, and a single deletion does not wait.
	restFactor   = 10
	longestPause = 250 * time.Millisecond
	// discoveryTimeout bounds each request of a discovery, or one that is never answered would hold
	// every namespace and every new kind. It is client-go's own.
	discoveryTimeout = 32 * time.Second
)

// discoveries remembers how the last discovery went. A namespace may go only after a discovery that
// began when it was already terminating: a kind that came later cannot have content in it.
type discoveries struct {
	asked chan struct{}              // one is wanted, on top of those that changes and time cause
	last  atomic.Pointer[discovered] // set by Watcher.run alone
}

// discovered is how the last one ended.
type discovered struct {
	began   time.Time     // the last that succeeded, at least for some groups
	failure string        // why the last attempt failed as a whole; empty if it did not
	rested  time.Time     // when the next may be made because a caller wants it
	next    chan struct{} // is closed when another has ended
}

func newDiscoveries() *discoveries {
	d := &discoveries{asked: make(chan struct{}, 1)}
	d.last.Store(&discovered{next: make(chan struct{})})
	return d
}

// Want asks for a discovery that begins after this call. Many calls cost one.
func (d *discoveries) Want() { await.Wake(d.asked) }

// begins notes that a discovery begins. It serves all who have asked until now.
func (d *discoveries) begins() time.Time {
	select {
	case <-d.asked:
	default:
	}
	return time.Now()
}

// ended notes how a discovery ended. err is set only if nothing was learned at all.
func (d *discoveries) ended(began time.Time, err error) {
	last := d.last.Load()
	now := discovered{began: began, next: make(chan struct{}),
		rested: time.Now().Add(min(restFactor*time.Since(began), longestPause))}
	if err != nil {
		now.began, now.failure = last.began, err.Error()
	}
	d.last.Store(&now)
	close(last.next)
}

// rest returns how long a discovery that a caller wants has to wait.
func (d *discoveries) rest() time.Duration {
	return time.Until(d.last.Load().rested)
}

// Since reports whether a discovery that began at a time or later has succeeded, and why the last
// one failed, if it did. next is closed when another has ended.
func (d *discoveries) Since(t time.Time) (done bool, failure string, next <-chan struct{}) {
	last := d.last.Load()
	return !last.began.IsZero() && !last.began.Before(t), last.failure, last.next
}
