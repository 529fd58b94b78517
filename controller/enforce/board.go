package enforce

import (
	"sync"
	"time"

	"github.com/weir-dev/weir/controller/await"
	"github.com/weir-dev/weir/policies"
)

// board is where all parts of enforcement publish their state: one snapshot under one lock. The
// status of policies is written from it.
type board struct {
	mu      sync.Mutex
	now     snapshot
	changed await.Change
}

// snapshot is what is known. Its maps are not written to any more.
type snapshot struct {
	counted counted
	asked   asked
	judged  judged
}

// counted is what back-fill has found.
type counted struct {
	of      *policies.Set // the policies that are counted
	tallies map[policies.PolicyKey]tally
	// complete: a pass over these policies has ended; done: and nothing has failed.
	complete, done bool
	waits          string // what happens to requests about a kind that is retried; empty if there is none
}

// tally is what was found for a policy.
type tally struct {
	// wanted is how many objects are to carry the finalizer for the policy, and carrying how many of
	// them do.
	wanted, carrying int64
	matched          int64 // how many objects the policy is about
	unknown          bool  // not all could be counted
}

func (t tally) plus(o tally) tally {
	t.wanted, t.carrying = t.wanted+o.wanted, t.carrying+o.carrying
	t.matched, t.unknown = t.matched+o.matched, t.unknown || o.unknown
	return t
}

// asked is whether the API server calls the webhook.
type asked struct {
	set     *policies.Set // the policies for which configurations were last written; nil: none yet
	since   time.Time     // when that last changed them
	failing time.Time     // since when they cannot be written; zero: they can
	seen    reach
	of      *policies.Set // the policies whose configurations had been written when that was seen
	reached bool          // true for good after the first success
}

// read returns what is known, and a channel that is closed at the next change.
func (b *board) read() (snapshot, <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now, b.changed.Next()
}

// update changes what is known, and returns what was known before.
func (b *board) update(change func(*snapshot)) (was snapshot) {
	b.mu.Lock()
	defer b.mu.Unlock()
	was = b.now
	change(&b.now)
	b.changed.Notify()
	return was
}
