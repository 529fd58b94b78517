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
	// slowAfter is when a first list that is under way counts as slow, and other work no longer
	// waits for it; failingAfter is when it counts as failing. Until then it holds foreground
	// deletion.
	slowAfter, failingAfter = firstListsTimeout, 5 * time.Minute
	// forbiddenAfter is how long 403 must be the only answer before a kind counts as forbidden.
	// While a cluster starts, roles are not there yet.
	forbiddenAfter = time.Minute
	// unwatchedFor is how long a kind that was listed may be without a watch before it is behind.
	// The API server ends watches all the time, and they are taken up within milliseconds.
	unwatchedFor = 2 * time.Second
)

// level is called when a list has ended and the graph has all of it.
func (f *follower) level(list uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.denied = time.Time{}
	f.listed, f.ended, f.have, f.lag = true, true, list, "" // the end of a list tells the graph
	f.overdueLocked()
}

// tried notes how an attempt to list or to watch ended.
func (f *follower) tried(ctx context.Context, err error) {
	if err == nil || ctx.Err() != nil {
		return
	}
	if f.contact && contactLost(err) {
		f.history.lost()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
	f.breakLocked()
	f.behindLocked(err.Error())
}

// again ends the watch, so that the kind is listed. If why is not empty, the kind is behind because
// of that. It returns the number of that list, whether the kind was listed before, and for how long
// it has been behind.
func (f *follower) again(why string) (list uint64, listed bool, behind time.Duration) {
	f.mu.Lock()
	f.due = f.begun + 1
	if why != "" {
		f.behindLocked(why)
	}
	if f.lag != "" {
		behind = time.Since(f.lagAt)
	}
	w := f.current
	f.current = nil
	list, listed = f.due, f.listed
	f.mu.Unlock()
	if w != nil {
		w.Stop()
	}
	return list, listed, behind
}

// hasListed reports whether a list has ended and, on the connection that requests go by, the watch
// after it has begun. It is true for a kind that is not followed any more.
func (f *follower) hasListed(list uint64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.done || f.have >= list && (!f.contact || !f.ended)
}

// sentAway reports whether an error says nothing about the kind: the API server is starting, or has
// too much to do.
func sentAway(err error) bool {
	return apierrors.IsTooManyRequests(err) || utilnet.IsConnectionRefused(err)
}

// unlisted notes that a list failed. One that was sent away is still expected for a while: see
// late.
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
	f.store.Apply(graph.ListFailed{Kind: f.Kind, Forbidden: f.forbiddenLocked(), Reason: err.Error()})
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

// late tells the graph about a kind that has not been listed for a while, because no answer comes
// or every attempt is sent away.
func (f *follower) late(after time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch reason := fmt.Sprintf("no list within %s", after); {
	case f.done || f.listed:
	case f.err != nil:
		f.store.Apply(graph.ListFailed{Kind: f.Kind, Forbidden: f.forbiddenLocked(), Reason: reason + ": " + f.err.Error()})
	case after == slowAfter:
		f.store.Apply(graph.ListSlow{Kind: f.Kind, Reason: reason})
	default:
		f.store.Apply(graph.ListFailed{Kind: f.Kind, Reason: reason})
	}
}

// watchBegan notes that there is a watch. It returns false if the kind has to be listed first.
func (f *follower) watchBegan(s *stream) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.have < f.due {
		return false
	}
	f.ended, f.current = false, s
	if f.overdue != nil {
		f.overdue.Stop()
	}
	return true
}

// watchEnded notes that a watch has ended, which was asked to end at a time. One that ends earlier
// may not have shown everything.
func (f *follower) watchEnded(ctx context.Context, s *stream, asked time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.done {
		return
	}
	f.ended = true
	if f.current == s && time.Until(asked) > time.Second { // again clears f.current
		f.breakLocked()
		if f.contact && ctx.Err() == nil {
			f.history.lost()
		}
	}
	f.overdueLocked()
}

// overdueLocked starts the timer for a missing watch.
func (f *follower) overdueLocked() {
	switch {
	case !f.ended:
	case f.overdue == nil:
		f.overdue = time.AfterFunc(unwatchedFor, f.unwatched)
	default:
		f.overdue.Reset(unwatchedFor)
	}
}

func (f *follower) unwatched() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended && !f.done {
		f.breakLocked()
		f.behindLocked(fmt.Sprintf("no watch for %s", unwatchedFor))
	}
}

// breakLocked notes that the watch may have a gap, so that the kind is listed before the next
// watch.
func (f *follower) breakLocked() {
	if f.have >= f.due {
		f.due = f.have + 1
	}
}

// behindLocked tells the graph, once, that there may be unseen objects of the kind.
func (f *follower) behindLocked(why string) {
	if f.done || !f.listed || f.lag != "" {
		return
	}
	f.lag, f.lagAt = why, time.Now()
	f.store.Apply(graph.FellBehind{Kind: f.Kind, Reason: why})
}
