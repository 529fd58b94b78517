package live

import (
	"net/http"
	"sync/atomic"
	"time"
)

const (
	// clockSamples is how often the API server's clock is looked at, and clockNoise what is no
	// difference: the Date of an answer has seconds, and answers take time.
	clockSamples = 10 * time.Second
	clockNoise   = 2 * time.Second
)

// Clock is the API server's, as the Date of its answers tells it: what is written into objects for
// others, and compared with times that the API server wrote. Everything else counts from what was
// seen, by the process's own monotonic clock. The zero value is ours, until there is an answer.
type Clock struct {
	ahead atomic.Int64 // of ours, in nanoseconds
	next  atomic.Int64 // when to look again, in nanoseconds of ours
}

// Now is the time by that clock.
func (c *Clock) Now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

// learn takes in a Date that was received now.
func (c *Clock) learn(date string) {
	now := time.Now()
	next := c.next.Load()
	if date == "" || now.UnixNano() < next && next-now.UnixNano() <= int64(clockSamples) || !c.next.CompareAndSwap(next, now.Add(clockSamples).UnixNano()) {
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

// Wrap has the clock learn from what the API server answers.
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
