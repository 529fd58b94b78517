package follow

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"

	"github.com/weir-dev/weir/controller/await"
	"github.com/weir-dev/weir/controller/kinds"
)

// Why a write was not sent.
var (
	ErrNoContact = errors.New("nothing is written until a read shows that the API server's history goes on: contact was lost, or reads are not answered")
	ErrRewound   = errors.New("the API server's history went back: what was decided before is void")
)

// History watches over what every decision rests on: that the API server goes on from what was seen
// of it. When its storage is restored from a backup, objects are there again that were seen to go,
// with the very uids and resourceVersions that requests carry as preconditions. No request would
// fail.
//
// So it is a gate too. Nothing is written but while a connection is held, and a consistent read
// that was begun later, and not long ago, has shown that the history goes on. Without that, a
// request that is tried again would be the first thing that a restored API server hears; and one
// whose storage alone is exchanged ends no connection.
//
// Proof are consistent reads alone, of each kind with itself: kinds may lie in storages of their
// own, whose resourceVersions have nothing to do with each other. Namespaces are read all the time;
// the others when they are listed, and when a watch that broke is taken up again.
type History struct {
	client    metadata.Interface
	heartbeat *heartbeat
	tether    *tether
	// aggregated tells whether a kind is served by an API server of its own, which has a history of
	// its own.
	aggregated func(context.Context, schema.GroupVersionResource) (bool, error)
	follows    following
	log        logr.Logger

	closed atomic.Bool
	epoch  atomic.Uint64 // how often the history went back
	wake   chan struct{}

	mu     sync.Mutex
	losses uint64                                 // of contact, so far
	opened await.Change                           // when the gate opens
	proved time.Time                              // when it was last known that the history goes on
	looked await.Change                           // when a look has ended
	broken map[schema.GroupVersionResource]string // the kinds that are not what they were, and why

	// What asks remembers, and no other part sees.
	last reading // of namespaces
	// trusted is the last of them while there was contact, backAt since when there is again; zero
	// if the gate is open.
	trusted reading
	backAt  time.Time
	silent  map[schema.GroupVersion]bool // aggregated APIs that did not answer when they were asked last
	denied  time.Time                    // since when they may not be listed; zero if they may
	blind   bool                         // that has been so for long
}

// following is who follows what a history is of.
type following interface {
	// Followed are the kinds that are followed now.
	Followed() []Followed
	// wentBack forgets everything and follows it again; kindWentBack does that with one kind. Both
	// return when it has begun.
	wentBack(ctx context.Context, why string)
	kindWentBack(kind schema.GroupResource)
}

func newHistory(client metadata.Interface, d discovery.DiscoveryInterface, follows following, log logr.Logger) *History {
	h := &History{
		client: client, aggregated: aggregated(d), follows: follows, heartbeat: newHeartbeat(client), log: log, wake: make(chan struct{}, 1),
		broken: map[schema.GroupVersionResource]string{}, silent: map[schema.GroupVersion]bool{},
	}
	h.tether = &tether{namespaces: client.Resource(kinds.Namespaces.WithVersion("v1")), lost: h.lost}
	return h
}

type epochKey struct{}

// Mark remembers in a context which history decisions under it rest on.
func (h *History) Mark(ctx context.Context) context.Context {
	return context.WithValue(ctx, epochKey{}, h.epoch.Load())
}

// Enter waits until there is contact, and refuses what was decided in another history.
func (h *History) Enter(ctx context.Context) (context.Context, error) {
	if ctx.Value(epochKey{}) == nil {
		ctx = h.Mark(ctx)
	}
	for h.closed.Load() {
		h.mu.Lock()
		opened := h.opened.Next()
		h.mu.Unlock()
		if !h.closed.Load() {
			break
		}
		select {
		case <-opened:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return ctx, h.admit(ctx)
}

// freshFor is how old the proof may be that a write rests on, not counting how long it took: a slow
// API server must not stop all work. A storage that is exchanged within that time goes unnoticed by
// the write. A proof that is half as old is renewed while writes go on.
const freshFor = 500 * time.Millisecond

// prove waits until there is a fresh proof that the history goes on; not for long: what cannot be
// proved is tried again.
func (h *History) prove(ctx context.Context) error {
	const looks = 2 // that may fail
	for n := 0; ; n++ {
		h.mu.Lock()
		age, looked := time.Since(h.proved), h.looked.Next()
		h.mu.Unlock()
		if age > freshFor/2 && !h.closed.Load() {
			h.ask()
		}
		switch {
		case age <= freshFor:
			return h.admit(ctx)
		case n == looks || h.closed.Load():
			return ErrNoContact
		}
		select {
		case <-looked:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// hasLooked tells that a look has ended, and whether it was a proof.
func (h *History) hasLooked(proved bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if proved {
		h.proved = time.Now()
	}
	h.looked.Notify()
}

// admit is enter for the last moment: it does not wait.
func (h *History) admit(ctx context.Context) error {
	if h.closed.Load() {
		return ErrNoContact
	}
	if epoch, ok := ctx.Value(epochKey{}).(uint64); ok && epoch != h.epoch.Load() {
		return ErrRewound
	}
	return nil
}

// lost closes the gate until the history has been asked for.
func (h *History) lost() {
	h.mu.Lock()
	h.losses++
	was := h.closed.Swap(true)
	h.mu.Unlock()
	if !was {
		h.ask()
	}
}

// contradicted says that a kind is not what it was any more.
func (h *History) contradicted(gvr schema.GroupVersionResource, why string) {
	h.mu.Lock()
	h.losses++
	h.closed.Store(true)
	h.broken[gvr] = why
	h.mu.Unlock()
	h.ask()
}

func (h *History) ask() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// open lets requests pass, unless contact was lost once more since losses were counted.
func (h *History) open(losses uint64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.losses != losses {
		h.ask()
		return false
	}
	if h.closed.Swap(false) {
		h.opened.Notify()
	}
	return true
}

// reading is how far a history had come at a moment.
type reading struct {
	version uint64 // 0: nothing is known
	at      time.Time
}

func readingOf(resourceVersion string) reading {
	return reading{VersionNumber(resourceVersion), time.Now()}
}

// A cluster does not write so much: a history that came so much further is another one. Restores
// with etcd's --bump-revision leap by a thousand million.
const (
	leapAtOnce   = 1_000_000
	leapASecond  = 100_000
	mostLeapTime = 24 * time.Hour // what comes later is as if it came then: the product stays small
)

// contradicts says why a consistent read cannot be of the history that had come as far as before;
// "" if it can.
func (r reading) contradicts(before reading) string {
	if r.version == 0 || before.version == 0 {
		return ""
	}
	if r.version < before.version {
		return fmt.Sprintf("resourceVersion %d, and it was %d before", r.version, before.version)
	}
	took := min(max(r.at.Sub(before.at), 0), mostLeapTime)
	if r.version-before.version > leapAtOnce+uint64(took.Seconds()*leapASecond) {
		return fmt.Sprintf("resourceVersion %d, and it was %d only %s before", r.version, before.version, took.Round(time.Millisecond))
	}
	return ""
}
