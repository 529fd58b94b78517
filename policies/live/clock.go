package live

import (
	"net/http"
	"sync/atomic"
	"time"
)

const (
	// clockSamples is how often the API server's clock is read, and clockNoise a difference that
	// does not count: the Date of an answer has only seconds, and answers take time.
	clockSamples = 10 * time.Second
	clockNoise   = 2 * time.Second
)

// Clock is the API server's clock, as the Date of its answers shows it. It is for times that are
// written into objects for others, and for comparison with times that the API server wrote. All
// else uses the process's monotonic clock. The zero value is the process's clock, until there is an
// answer.
type Clock struct {
	ahead atomic.Int64 // how far it is ahead of the process's clock, in nanoseconds
	next  atomic.Int64 // when to read it again, by the process's clock
}

// Now returns the time by the API server's clock.
func (c *Clock) Now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

// learn reads a Date that was received now.
func (c *Clock) learn(date string) {
	now := time.Now()
	next := c.next.Load()
	early := now.UnixNano() < next && next-now.UnixNano() <= int64(clockSamples)
	if date == "" || early || !c.next.CompareAndSwap(next, now.Add(clockSamples).UnixNano()) {
		return
	}
	t, err := http.ParseTime(date)
	if err != nil {
		return
	}
	ahead := t.Sub(now)
	if ahead.Abs() < clockNoise {
		ahead = 0
	}
	c.ahead.Store(int64(ahead))
}

// Wrap returns a transport from whose answers the clock learns.
func (c *Clock) Wrap(next http.RoundTripper) http.RoundTripper { return &clockTransport{next, c} }

type clockTransport struct {
	next  http.RoundTripper
	clock *Clock
}

// RoundTrip implements http.RoundTripper.
func (t *clockTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.next.RoundTrip(r)
	if err == nil {
		t.clock.learn(resp.Header.Get("Date"))
	}
	return resp, err
}

// WrappedRoundTripper lets client-go find the transport below.
func (t *clockTransport) WrappedRoundTripper() http.RoundTripper { return t.next }
