package request

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// share is what one kind may use of the limiter's places. A kind begins with a quarter, and has all
// once its requests have gone well. It fails while its requests hang or are slow, or fail one after
// another, or its API answers 429, until one goes well: an aggregated API or a webhook can do that
// to one kind, and the others must not notice.
//
// Objects of a failing kind are put off: no worker waits for it with them, and they are called back
// as there is room. So a worker is free for others, and thousands of objects of such a kind cost
// nothing.
type share struct {
	kind     schema.GroupResource
	most     float64       // how many may be under way
	answered bool          // it was, once, as it should be
	proven   bool          // the first rounds are over: most grows by rounds, no more by answers
	cutAt    time.Time     // the last time most was cut
	under    int           // under way
	late     int           // of these: those that have not been answered for long
	spared   int           // of these, and not late: those that have what was left over
	failures int           // since the last answer
	backoff  time.Duration // the last rest for which no server asked
	pause    time.Time     // rests until then
	alarm    *time.Timer   // rings when it is over
	failing  string        // what happens to requests about the kind; "" if it is well

	waiters []*waiter
	off     []types.UID // objects that were put off, in order, each once
	isOff   map[types.UID]struct{}
	called  int // objects that were called back: their places are kept for them
}

// waiter is a goroutine that waits for a place.
type waiter struct {
	given   chan error // nil: it has it
	patient bool       // it waits for a failing kind, too
}

// answer is what came of a request.
type answer struct {
	verdict    verdict
	latency    time.Duration
	retryAfter time.Duration // throttled: the pause that was asked for, if any
	long       bool          // a request that may take long: its latency says nothing
	late       bool          // limiter.isLate was called about it
	spare      bool          // it had what was left over
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
	slowFactor   = 10
	slowestQuick = 20 * time.Millisecond // ten times this is slow however quick the server can be
	slowestEver  = time.Second           // this is slow however slow the server has been
	longIsLate   = 5 * time.Second       // for requests that may take long
	patience     = 5 * time.Second
	slowly       = "are answered slowly" // the one failure in which things get done
	firstRest    = 100 * time.Millisecond
	mostRest     = 5 * time.Second
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
		s = &share{kind: kind, most: l.quarter(), isOff: map[types.UID]struct{}{}}
		l.shares[kind] = s
	}
	return s
}

// forget drops what is known of kinds that are not served any more.
func (l *Limiter) forget(served func(schema.GroupResource) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for kind, s := range l.shares {
		waits := s.wantedLocked() || slices.ContainsFunc(l.spares, func(w *spare) bool { return w.share == s })
		if !served(kind) && s.under+s.called == 0 && !waits {
			delete(l.shares, kind)
		}
	}
}

// isLate tells that a request has not been answered for long. It holds its place for as long as it
// takes, so others must not wait for it. When a quarter of all places is held like this, the kind
// fails: few late answers are usual.
func (l *Limiter) isLate(kind schema.GroupResource, spare bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.shareLocked(kind)
	if spare {
		l.endSpareLocked(s)
	}
	s.late++
	l.late++
	if s.failing == "" {
		l.well--
	} else {
		l.ill--
	}
	if float64(s.late) >= l.quarter() {
		l.failingLocked(s, "hang")
	}
	l.wakeLocked()
}

// failingLocked moves what a kind has under way to the places of those that fail, and sends away
// those who do not wait for such.
func (l *Limiter) failingLocked(s *share, why string) {
	if s.failing == "" {
		l.well -= s.under - s.late
		l.spared -= s.spared
		l.ill += s.under - s.late + s.called
	}
	s.failing = why
	s.waiters = slices.DeleteFunc(s.waiters, func(w *waiter) bool {
		if !w.patient {
			w.given <- s.busy()
		}
		return !w.patient
	})
	l.leaveLocked(s)
}

// healLocked is told of each answer that is as it should be. One is enough, but not while the kind
// rests: that is an answer to what was sent before.
func (l *Limiter) healLocked(s *share) {
	s.failures = 0
	if s.failing == "" || float64(s.late) >= l.quarter() || time.Now().Before(s.pause) {
		return
	}
	s.failing, s.backoff = "", 0
	l.ill -= s.under - s.late + s.called
	l.well += s.under - s.late
	l.spared += s.spared
}

// shrink cuts what a kind may have under way, once per answer time.
func (s *share) shrink(latency time.Duration, least float64) {
	s.proven = true
	if now := time.Now(); now.Sub(s.cutAt) > latency {
		s.cutAt = now
		s.most = max(least, s.most*0.75)
	}
}

// grow doubles what a kind may have under way with each round of answers, until it was cut once;
// then it adds two.
func (s *share) grow(most float64) {
	step := 1.0
	if s.proven {
		step = 2 / s.most
	}
	s.most = min(most, s.most+step)
}

// rest leaves a kind alone for as long as it asks for, or twice as long as the last time.
func (s *share) rest(retryAfter time.Duration, over func()) {
	now := time.Now()
	if retryAfter == 0 {
		if now.Before(s.pause) {
			return // what fails now was sent before
		}
		s.backoff = min(mostRest, max(firstRest, 2*s.backoff))
		retryAfter = s.backoff
	}
	retryAfter = min(retryAfter, MostPause)
	if until := now.Add(retryAfter); until.After(s.pause) {
		s.pause = until
		if s.alarm == nil {
			s.alarm = time.AfterFunc(retryAfter, over)
		} else {
			s.alarm.Reset(retryAfter)
		}
	}
}

// hopelessLocked tells whether to wait for the kind, which fails, is no use: it rests for longer,
// or enough wait already.
func (s *share) hopelessLocked(enough float64) bool {
	return time.Until(s.pause) > patience || float64(len(s.waiters)) >= enough
}

// PutOff has an object called back when there is room for its kind, which has failed. That may be
// now.
func (l *Limiter) PutOff(kind schema.GroupResource, uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.shareLocked(kind)
	if _, ok := s.isOff[uid]; ok || l.called[uid] != nil {
		return
	}
	s.isOff[uid] = struct{}{}
	s.off = append(s.off, uid)
	l.calls.Add(1)
	l.queueLocked(s)
	l.wakeLocked()
}

// Arrived is told of each object that a worker begins with. The place that was kept for one that
// was called back is free, for it to take.
func (l *Limiter) Arrived(uid types.UID) {
	if l.calls.Load() == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.called[uid]
	if s == nil {
		return
	}
	delete(l.called, uid)
	l.calls.Add(-1)
	s.called--
	if s.failing != "" {
		l.ill--
	}
}

// Left is told when a worker has finished with an object: it may not have used the place.
func (l *Limiter) Left() {
	if l.calls.Load() > 0 || l.sparing.Load() > 0 {
		l.wake()
	}
}

func (l *Limiter) wake() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wakeLocked()
}

// wakeLocked gives away what room there is, by turns.
func (l *Limiter) wakeLocked() {
	for idle := 0; idle < len(l.turns); {
		s := l.turns[0]
		l.turns = append(l.turns[1:], s)
		room := l.roomLocked(s)
		switch {
		case room && len(s.waiters) > 0:
			l.takeLocked(s)
			s.waiters[0].given <- nil
			s.waiters = s.waiters[1:]
		case room && float64(s.under+s.called) < s.most:
			l.callLocked(s)
		default:
			idle++
			continue
		}
		idle = 0
		l.leaveLocked(s)
	}
	l.wakeSparesLocked()
}

// callLocked calls back the object that was put off first.
func (l *Limiter) callLocked(s *share) {
	uid := s.off[0]
	s.off = s.off[1:]
	delete(s.isOff, uid)
	s.called++
	if s.failing != "" {
		l.ill++
	}
	l.called[uid] = s
	l.resume(uid)
}

func (s *share) wantedLocked() bool { return len(s.waiters)+len(s.off) > 0 }

// queueLocked gives a share its turn, leaveLocked takes it out if nothing waits for it any more.
func (l *Limiter) queueLocked(s *share) {
	if !slices.Contains(l.turns, s) {
		l.turns = append(l.turns, s)
	}
}

func (l *Limiter) leaveLocked(s *share) {
	if !s.wantedLocked() {
		l.turns = slices.DeleteFunc(l.turns, func(x *share) bool { return x == s })
	}
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
			n[kind] = len(s.off) + s.called
		}
	}
	return n
}
