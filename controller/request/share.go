package request

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// share is what one kind may use of the limiter's places. A kind begins with a quarter, and has one
// more for each request that goes well, up to all. It fails while its requests hang or are slow, or
// fail one after another, or its API answers 429, until one goes well: an aggregated API or a
// webhook can do that to one kind, and the others must not notice. Then it has a quarter again.
//
// Objects of a failing kind are put off: no worker waits for it with them, and they are called back
// as there is room. So a worker is free for others, and thousands of objects of such a kind cost
// nothing.
type share struct {
	kind     schema.GroupResource
	most     int           // how many may be under way
	under    int           // under way
	late     int           // of these: those that have not been answered for long
	failures int           // since the last answer
	backoff  time.Duration // the last rest for which no server asked
	pause    time.Time     // rests until then
	failing  string        // what happens to requests about the kind; "" if it is well

	waiting []*place
	off     map[types.UID]struct{} // objects that were put off
}

type verdict uint8

const (
	noVerdict         verdict = iota // we ended it
	fine                             // an answer, whatever it says
	unanswered                       // the API, or the way to it, fails
	throttledByKind                  // 429 from the API that serves the kind
	throttledByServer                // 429 from the API server itself: for all kinds
)

const (
	// isLong is after how long a request is late, and longIsLong the same of those that may take
	// long. A request is answered in some 10 ms, unless a webhook is slow or the server busy.
	isLong     = 250 * time.Millisecond
	longIsLong = 5 * time.Second
	patience   = 5 * time.Second
	firstRest  = 100 * time.Millisecond
	mostRest   = 5 * time.Second
)

// busyError is why a request about a kind was not sent. Nothing has happened to the object.
type busyError struct {
	kind    schema.GroupResource
	failing string
}

func (e *busyError) Error() string {
	return fmt.Sprintf("put off: requests about %s %s", e.kind, e.failing)
}

// IsBusy tells whether a request was not even sent, because requests about its kind fail.
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

// forget drops what is known of kinds that are not served any more.
func (l *Limiter) forget(served func(schema.GroupResource) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for kind, s := range l.shares {
		if !served(kind) && s.under+len(s.waiting)+len(s.off) == 0 {
			delete(l.shares, kind)
		}
	}
}

// failsLocked notes that a kind fails. Those who do not wait for such are sent away by tick.
func (l *Limiter) failsLocked(s *share, why string) {
	s.failing, s.most = why, l.quarter()
}

// rest leaves a kind alone for as long as it asks for, or twice as long as the last time.
func (s *share) rest(asked time.Duration) {
	now := time.Now()
	if asked == 0 {
		if now.Before(s.pause) {
			return // what fails now was sent before
		}
		s.backoff = min(mostRest, max(firstRest, 2*s.backoff))
		asked = s.backoff
	}
	if until := now.Add(min(asked, MostPause)); until.After(s.pause) {
		s.pause = until
	}
}

// PutOff has an object called back when there is room for its kind, which has failed.
func (l *Limiter) PutOff(kind schema.GroupResource, uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shareLocked(kind).off[uid] = struct{}{}
	l.tickLaterLocked()
}

// mostCalled is how many objects of a kind that is well again are called back at each tick: more than
// can be sent until the next one, and not all, which would be put off once more if it fails again.
const mostCalled = 1000

// callLocked takes out of a share what is to be called back: as many objects as there is room for.
// One that finds none when its turn comes is put off again.
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

// Failing is what happens to requests about a kind, in words; empty if it is well.
func (l *Limiter) Failing(kind schema.GroupResource) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.shares[kind]; s != nil && s.failing != "" {
		return fmt.Sprintf("requests about %s %s", s.kind, s.failing)
	}
	return ""
}

// PutOffs is how many objects wait for their turn, of each failing kind.
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
