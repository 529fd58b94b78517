package follow

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/weir-dev/weir/controller/graph"
)

const (
	// slowAfter is when a first list that is under way is called slow, and nothing waits for it any
	// more to begin with other work; failingAfter is when it counts as one that fails. Until then
	// it holds foreground deletion.
	slowAfter, failingAfter = firstListsTimeout, 5 * time.Minute
	// forbiddenAfter is for how long 403 must have been the only answer until a kind is taken for
	// one that Weir may not see. While a cluster starts, roles are not there yet.
	forbiddenAfter = time.Minute
	// unwatchedFor is how long a kind that was listed may be without a watch until it is behind.
	// Watches end all the time, because the API server ends them, and are taken up again within
	// milliseconds.
	unwatchedFor = 2 * time.Second
)

// level is told that the graph has everything of the kind up to now.
func (f *follower) level(listed bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.behindNow.Store(false)
	f.cutOff.Store(false)
	f.broken, f.mute, f.denied = false, false, time.Time{}
	if listed {
		f.listed, f.ended = true, true
		f.overdueLocked()
	}
	if f.lag != "" && !listed { // a list says so by itself
		f.Store.Apply(graph.CaughtUp{Kind: f.Kind})
	}
	f.lag = ""
}

func (f *follower) trying() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = nil
}

// tried takes in how an attempt to list or to watch ended.
func (f *follower) tried(ctx context.Context, err error) {
	if err == nil {
		f.cutOff.Store(false)
	}
	if err == nil || ctx.Err() != nil {
		return
	}
	if contactLost(err) {
		f.history.lost()
	}
	f.failed(err)
}

// failed takes in why there is no list or watch, be it that client-go tries on.
func (f *follower) failed(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
	f.breakLocked()
	f.cutOff.Store(apierrors.IsServiceUnavailable(err) && (f.lag == "" || f.cutOff.Load()))
	f.behindLocked(err.Error())
}

// silent takes in that the watch does not show what it should: it ends, and counts as broken.
func (f *follower) silent(why string) {
	f.mu.Lock()
	f.breakLocked()
	f.behindLocked(why)
	w := f.current
	f.mu.Unlock()
	if w != nil {
		w.Stop()
	}
}

// sentAway tells whether an attempt says nothing of the kind: the API server starts, or has too
// much to do.
func sentAway(err error) bool {
	return apierrors.IsTooManyRequests(err) || utilnet.IsConnectionRefused(err)
}

// unlisted takes in that there is no list. One that was sent away is still expected, for a while:
// see late.
func (f *follower) unlisted(err error) {
	if sentAway(err) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
	switch {
	case !apierrors.IsForbidden(err):
		f.denied = time.Time{}
	case f.denied.IsZero():
		f.denied = time.Now()
	}
	if f.listed {
		f.behindLocked(err.Error())
		return
	}
	f.Store.Apply(graph.ListFailed{Kind: f.Kind, Forbidden: f.forbiddenLocked(), Reason: err.Error()})
}

func (f *follower) forbiddenLocked() bool {
	return !f.denied.IsZero() && time.Since(f.denied) >= forbiddenAfter
}

func (f *follower) longestPause() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.forbiddenLocked():
		return mostForbiddenPause
	case contactLost(f.err) || sentAway(f.err): // an API server that is back is seen soon
		return mostRetry
	}
	return mostListPause
}

// late says what a kind is that has not been listed for a while, because nothing comes or every
// attempt is sent away.
func (f *follower) late(after time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch reason := fmt.Sprintf("no list within %s", after); {
	case f.done || f.listed:
	case f.err != nil:
		f.Store.Apply(graph.ListFailed{Kind: f.Kind, Forbidden: f.forbiddenLocked(), Reason: reason + ": " + f.err.Error()})
	case after == slowAfter:
		f.Store.Apply(graph.ListSlow{Kind: f.Kind, Reason: reason})
	default:
		f.Store.Apply(graph.ListFailed{Kind: f.Kind, Reason: reason})
	}
}

// watchEnded takes in that a watch has, which was asked to end at a time.
func (f *follower) watchEnded(ctx context.Context, asked time.Time) {
	early := time.Until(asked) > time.Second
	if ctx.Err() == nil && early {
		f.history.lost()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.done {
		return
	}
	f.ended = true
	if early {
		f.breakLocked()
	}
	f.overdueLocked()
}

// overdueLocked waits for a watch where there is none: not for long.
func (f *follower) overdueLocked() {
	switch {
	case !f.ended:
	case f.overdue == nil:
		f.overdue = time.AfterFunc(unwatchedFor, f.unwatched)
	default:
		f.overdue.Reset(unwatchedFor)
	}
}

// watchBegan takes in that there is a watch again, which has to come as far as a reading. False: it
// is not known to go on, and there is no such reading.
func (f *follower) watchBegan(until reading) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = false
	if f.overdue != nil {
		f.overdue.Stop()
	}
	if !f.broken {
		return true
	}
	f.until.Store(until.version)
	f.mute = true
	return !until.at.IsZero()
}

func (f *follower) unwatched() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended && !f.done {
		f.breakLocked()
		f.behindLocked(fmt.Sprintf("no watch for %s", unwatchedFor))
	}
}

// breakLocked notes that it has to be shown that the next watch goes on.
func (f *follower) breakLocked() {
	f.broken = true
	f.until.Store(0)
	f.behindNow.Store(true)
}

// behindLocked says, once, that there may be objects of the kind that the graph has not seen.
func (f *follower) behindLocked(why string) {
	if f.done || !f.listed || f.lag != "" {
		return
	}
	f.lag = why
	f.Store.Apply(graph.FellBehind{Kind: f.Kind, Reason: why})
}
