package request

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// share is the limiter's state of one kind. A kind begins with a quarter of the places. It gets one
// more for each request that goes well, up to all. It fails when its requests hang, are slow, fail
// one after another, or are answered 429, until one goes well. Then it has a quarter again. An
// aggregated API or a webhook can make one kind fail, and the others must not notice.
//
// Objects of a failing kind are put off: no worker waits with them, and they are called back as
// there is room. So workers are free for others, and thousands of such objects cost nothing.
type share struct {
	kind     schema.GroupResource
	most     int           // how many may be under way
	under    int           // under way
	late     int           // of under: those that are late
	failures int           // since the last good answer
	backoff  time.Duration // the last rest that no server asked for
	pause    time.Time     // nothing is sent until then
	failing  string        // what happens to requests of the kind; "" if it is well

	waiting []*place
	off     map[types.UID]struct{} // objects that were put off
}

type verdict uint8

const (
	noVerdict         verdict = iota // the request was ended here, or not sent
	fine                             // any answer of the API
	unanswered                       // the API, or the way to it, failed
	throttledByKind                  // 429 from the API that serves the kind
	throttledByServer                // 429 from the API server's own limits: for all kinds
)

const (
	// isLong is after what time a request is late. longIsLong is the same for requests that may take
	// long. A request is answered in some 10 ms, unless a webhook is slow or the server busy.
	isLong     = 250 * time.Millisecond
	longIsLong = 5 * time.Second
	patience   = 5 * time.Second
	firstRest  = 100 * time.Millisecond
	mostRest   = 5 * time.Second
)

// busyError is why a request was not sent: its kind fails. Nothing has happened to the object.
type busyError struct {
	kind    schema.GroupResource
	failing string
}

func (e *busyError) Error() string {
	return fmt.Sprintf("put off: requests about %s %s", e.kind, e.failing)
}

// IsBusy reports whether a request was not sent because requests of its kind fail.
func IsBusy(err error) bool {
	var busy *busyError
	return err != nil && errors.As(err, &busy)
}

func (s *share) busy() error { return &busyError{s.kind, s.failing} }

func (l *Limiter) shareLocked(kind schema.GroupResource) *share {
	s := l.shares[kind]
	if s == nil {
		s = &share{kind: kind, most: l.quarter(), off: map[types.UID]struct{}{}}
		l.shares[kind] = s
	}
	return s
}

// forget drops the state of kinds that are not served any more.
func (l *Limiter) forget(served func(schema.GroupResource) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for kind, s := range l.shares {
		if !served(kind) && s.under+len(s.waiting)+len(s.off) == 0 {
			delete(l.shares, kind)
		}
	}
}

// failsLocked marks a kind as failing. tick ends the wait of those that do not wait for failing
// kinds.
func (l *Limiter) failsLocked(s *share, why string) {
	s.failing, s.most = why, l.quarter()
}

// rest pauses a kind for as long as was asked, or, if 0, twice as long as the last time.
func (s *share) rest(asked time.Duration) {
	now := time.Now()
	if asked == 0 {
		if now.Before(s.pause) {
			return // the failed request was sent before the pause
		}
		s.backoff = min(mostRest, max(firstRest, 2*s.backoff))
		asked = s.backoff
	}
	if until := now.Add(min(asked, MostPause)); until.After(s.pause) {
		s.pause = until
	}
}

// PutOff has an object of a failing kind called back when there is room.
func (l *Limiter) PutOff(kind schema.GroupResource, uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shareLocked(kind).off[uid] = struct{}{}
	l.tickLaterLocked()
}

// mostCalled is how many objects of a kind that is well again are called back at each tick. It is
// more than can be sent before the next tick, and not all, which would be put off once more if the
// kind fails again.
const mostCalled = 1000

// callLocked removes from a share the objects to call back, as many as there is room for. An object
// that finds no room in its turn is put off again.
func (l *Limiter) callLocked(s *share) (back []types.UID) {
	room := mostCalled
	if s.failing != "" {
		if room = 0; l.roomLocked(s) {
			room = s.most - s.under
		}
	}
	for uid := range s.off {
		if len(back) == room {
			break
		}
		delete(s.off, uid)
		back = append(back, uid)
	}
	return back
}

// Failing returns what happens to requests about a kind; empty if it is well.
func (l *Limiter) Failing(kind schema.GroupResource) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.shares[kind]; s != nil && s.failing != "" {
		return fmt.Sprintf("requests about %s %s", s.kind, s.failing)
	}
	return ""
}

// PutOffs returns how many objects are put off, of each failing kind.
func (l *Limiter) PutOffs() map[schema.GroupResource]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := map[schema.GroupResource]int{}
	for kind, s := range l.shares {
		if s.failing != "" {
			n[kind] = len(s.off)
		}
	}
	return n
}
