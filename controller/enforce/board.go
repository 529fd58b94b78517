package enforce

import (
	"sync"
	"time"

	"github.com/weir-dev/weir/controller/await"
	"github.com/weir-dev/weir/policies"
)

// board is where all parts of enforcement say how far they are: one snapshot under one lock, of
// which the status of policies is written.
type board struct {
	mu      sync.Mutex
	now     snapshot
	changed await.Change
}

// snapshot is what is known. Maps in it are not written to any more.
type snapshot struct {
	counted counted
	asked   asked
	judged  judged
}

// counted is what back-fill has found.
type counted struct {
	of      *policies.Set // whose policies are counted
	tallies map[policies.PolicyKey]tally
	// complete: a pass over these policies has come to its end; done: and nothing has failed.
	complete, done bool
	waits          string // what happens to requests about a kind that is tried again; empty: to none
}

// tally is what was found of a policy.
type tally struct {
	// wanted are the objects that are to carry the finalizer for the policy, carrying those of them
	// that do.
	wanted, carrying int64
	// matched are the objects that it is about, failed those about which its conditions fail, last
	// one of these.
	matched, failed int64
	last            string
	unknown         bool // not all could be counted
}

func (t tally) plus(o tally) tally {
	t.wanted, t.carrying = t.wanted+o.wanted, t.carrying+o.carrying
	t.matched, t.failed = t.matched+o.matched, t.failed+o.failed
	t.last, t.unknown = max(t.last, o.last), t.unknown || o.unknown
	return t
}

// asked is whether the API server asks the webhook.
type asked struct {
	set     *policies.Set // what the webhook configurations were last written for; nil: never yet
	since   time.Time     // when that last changed them
	failing time.Time     // since when what is to be written could not be; zero: it could
	behind  reach         // what that means for policies of which nothing is written; empty: nothing yet
	seen    reach
	of      *policies.Set // whose configurations had been written when that was seen
	reached bool          // once; what came after does not matter
}

// read is what is known, and a channel that is closed when that changes.
func (b *board) read() (snapshot, <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now, b.changed.Next()
}

// update changes what is known, and returns what it was.
func (b *board) update(change func(*snapshot)) (was snapshot) {
	b.mu.Lock()
	defer b.mu.Unlock()
	was = b.now
	change(&b.now)
	b.changed.Notify()
	return was
}
