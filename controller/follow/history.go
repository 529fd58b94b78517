package follow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/weir-dev/weir/controller/await"
)

// Why a write was not sent.
var (
	ErrNoContact = errors.New("contact with the API server was lost: writes are paused until the kinds are listed again, since its storage may have been restored")
	ErrRewound   = errors.New("the API server's history went back: what was decided before is void")
)

const (
	// lookEvery is how often a closed gate looks whether the kinds have been listed.
	lookEvery = 100 * time.Millisecond
	// listedWithin is how long a gate stays closed for kinds that are not listed, while others are.
	// A kind that was behind for sickAfter before contact was lost is not waited for.
	listedWithin, sickAfter = 15 * time.Second, time.Minute
	// aggregatedWithin is the same of a kind of an aggregated API.
	aggregatedWithin = time.Second
	// apiServiceTimeout bounds a read of an APIService.
	apiServiceTimeout = 10 * time.Second
)

// History watches over what every decision rests on: that the API server goes on from what was seen
// of it. After a restore from a backup objects are there again that were seen to go, with the uids
// and resourceVersions that requests carry as preconditions. No request would fail.
//
// It is a gate for writes. etcd is restored while all API servers are stopped, so the connection
// that requests go by ends before. Then the gate closes, and every kind is listed again, by
// consistent reads. A list that is older than what was seen of its kind, or shows an object that
// was seen to go or at a later version, tells that the history went back. What was seen is
// forgotten then, and what was decided is void. The gate opens when the kinds are listed. What is
// not listed in time does not hold up the others: what was seen to go of it counts no more, and is
// looked up.
//
// Kinds are compared with themselves alone: they may lie in storages of their own, whose
// resourceVersions have nothing to do with each other.
type History struct {
	// aggregated tells whether a kind is served by an API server of its own, which has a history of
	// its own.
	aggregated func(context.Context, schema.GroupVersionResource) (bool, error)
	follows    following
	log        logr.Logger

	closed atomic.Bool
	epoch  atomic.Uint64 // how often decisions became void
	wake   chan struct{}

	mu     sync.Mutex
	losses uint64                                 // of contact, so far
	made   uint64                                 // how many of them have been made good
	opened await.Change                           // when the gate opens
	broken map[schema.GroupVersionResource]string // the kinds that are not what they were, and why

	round *round // of lists since contact was lost; nil while the gate is open. run's alone
}

// round is what has to be listed after contact was lost.
type round struct {
	losses uint64
	lists  map[*follower]uint64 // the list of each kind that has to end
	sick   map[*follower]bool   // kinds that are not waited for
	backAt time.Time            // when the first of them was listed
	sorted bool                 // which of them are of aggregated APIs has been asked
}

// following is who follows what a history is of.
type following interface {
	followers() []*follower
	// wentBack forgets everything and follows it again; kindWentBack does that with one kind. Both
	// return when it has begun.
	wentBack(ctx context.Context, why string)
	kindWentBack(kind schema.GroupResource)
	// doubt forgets what was seen to go of a kind.
	doubt(kind schema.GroupResource)
}

func newHistory(d discovery.DiscoveryInterface, follows following, log logr.Logger) *History {
	return &History{
		aggregated: aggregated(d), follows: follows, log: log, wake: make(chan struct{}, 1),
		broken: map[schema.GroupVersionResource]string{},
	}
}

type epochKey struct{}

// Mark remembers in a context which history decisions under it rest on.
func (h *History) Mark(ctx context.Context) context.Context {
	return context.WithValue(ctx, epochKey{}, h.epoch.Load())
}

// Enter waits until the gate is open, and refuses what was decided in another history.
func (h *History) Enter(ctx context.Context) (context.Context, error) {
	if ctx.Value(epochKey{}) == nil {
		ctx = h.Mark(ctx)
	}
	for {
		opened := h.opened.Next()
		if !h.closed.Load() {
			return ctx, h.admit(ctx)
		}
		select {
		case <-opened:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// admit is Enter for the last moment: it does not wait.
func (h *History) admit(ctx context.Context) error {
	if h.closed.Load() {
		return ErrNoContact
	}
	if epoch, ok := ctx.Value(epochKey{}).(uint64); ok && epoch != h.epoch.Load() {
		return ErrRewound
	}
	return nil
}

// lost closes the gate until the kinds have been listed again.
func (h *History) lost() { h.shut(func() { h.losses++ }) }

// contradicted says that a kind is not what it was any more.
func (h *History) contradicted(gvr schema.GroupVersionResource, why string) {
	h.shut(func() { h.broken[gvr] = why })
}

func (h *History) shut(note func()) {
	h.mu.Lock()
	h.closed.Store(true)
	note()
	h.mu.Unlock()
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// open lets requests pass, unless there is more to make good since losses were counted.
func (h *History) open(losses uint64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.losses != losses || len(h.broken) > 0 {
		return false
	}
	h.round, h.made = nil, losses
	h.closed.Store(false)
	h.opened.Notify()
	return true
}

// run opens the gate each time that it was closed, until ctx ends.
func (h *History) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.wake:
		}
		for h.closed.Load() && !h.look(ctx) {
			if await.Pause(ctx, lookEvery) != nil {
				return
			}
		}
	}
}

// look opens the gate if all that is waited for has been listed.
func (h *History) look(ctx context.Context) (opened bool) {
	h.mu.Lock()
	losses, broken, lost := h.losses, h.broken, h.losses != h.made
	h.broken = map[schema.GroupVersionResource]string{}
	h.mu.Unlock()
	switch back, done := h.settle(ctx, broken); {
	case !done:
		return false
	case back, !lost:
		return h.open(losses) // nothing is left that could be wrong
	}
	if h.round == nil || h.round.losses != losses {
		h.round = h.begin(losses)
	}
	if h.waits(ctx, h.round) {
		return false
	}
	for _, f := range append(h.round.missing(), slices.Collect(maps.Keys(h.round.sick))...) {
		h.log.Info("a kind is not listed since contact was lost: what was seen to be deleted of it is looked up",
			"kind", f.gvr.String())
		h.epoch.Add(1)
		h.follows.doubt(f.Kind)
		h.epoch.Add(1) // what was decided meanwhile rests on it, too
	}
	return h.open(losses)
}

// begin has every kind listed again.
func (h *History) begin(losses uint64) *round {
	r := &round{losses: losses, lists: map[*follower]uint64{}, sick: map[*follower]bool{}}
	if h.round != nil {
		r.sick = h.round.sick
	}
	for _, f := range h.follows.followers() {
		list, listed, behind := f.again("")
		switch {
		case h.round == nil && (!listed || behind > sickAfter):
			r.sick[f] = true
		case listed && !r.sick[f]:
			r.lists[f] = list
		}
	}
	return r
}

// waits tells whether the gate has to stay closed for a list. Not for those of aggregated APIs: each
// of them has a history of its own, and many are late when an API server starts.
func (h *History) waits(ctx context.Context, r *round) bool {
	missing := r.missing()
	if r.backAt.IsZero() && (len(missing) < len(r.lists) || len(r.lists) == 0) {
		r.backAt = time.Now()
	}
	switch since := time.Since(r.backAt); {
	case r.backAt.IsZero():
		return true
	case len(missing) == 0, since >= listedWithin:
		return false
	case since >= aggregatedWithin && !r.sorted:
		r.sorted = true
		for _, f := range missing {
			within, cancel := context.WithTimeout(ctx, apiServiceTimeout)
			if own, err := h.aggregated(within, f.gvr); err == nil && own {
				delete(r.lists, f)
				r.sick[f] = true
			}
			cancel()
		}
	}
	return len(r.missing()) > 0
}

// missing are the kinds that have not been listed yet, and are still followed. The connection that
// requests go by has to be watched, too: an API server that leaves ends watches, and answers lists.
func (r *round) missing() (kinds []*follower) {
	for f, list := range r.lists {
		if !f.hasListed(list) {
			kinds = append(kinds, f)
		}
	}
	return kinds
}

// settle draws the consequences for kinds that are not what they were. back: everything is
// forgotten; not done: it could not be yet.
func (h *History) settle(ctx context.Context, broken map[schema.GroupVersionResource]string) (back, done bool) {
	for gvr, why := range broken {
		within, cancel := context.WithTimeout(ctx, apiServiceTimeout)
		own, err := h.aggregated(within, gvr)
		cancel()
		switch {
		case err != nil:
			h.log.Info("cannot tell whose history went back", "kind", gvr.String(), "why", why, "err", err.Error())
			h.mu.Lock()
			maps.Copy(h.broken, broken)
			h.mu.Unlock()
			return false, false
		case own:
			h.log.Info("the history of an aggregated API went back, it is listed again", "kind", gvr.String(), "why", why)
			h.epoch.Add(1)
			h.follows.kindWentBack(gvr.GroupResource())
			h.epoch.Add(1)
			delete(broken, gvr)
		default:
			h.epoch.Add(1)
			h.follows.wentBack(ctx, gvr.GroupResource().String()+": "+why)
			h.epoch.Add(1) // what was decided until the graph had forgotten rests on the old history, too
			h.mu.Lock()
			clear(h.broken) // said by what was followed before
			h.mu.Unlock()
			return true, true
		}
	}
	return false, true
}

// aggregated asks whether a kind is served by an API server of its own: its APIService names a
// Service then. Where nothing is aggregated there are no APIServices.
func aggregated(client discovery.DiscoveryInterface) func(context.Context, schema.GroupVersionResource) (bool, error) {
	return func(ctx context.Context, gvr schema.GroupVersionResource) (bool, error) {
		if gvr.Group == "" {
			return false, nil
		}
		name := gvr.Version + "." + gvr.Group
		body, err := client.RESTClient().Get().AbsPath("/apis/apiregistration.k8s.io/v1/apiservices", name).DoRaw(ctx)
		switch {
		case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
			return false, nil
		case err != nil:
			return false, fmt.Errorf("read APIService %s: %w", name, err)
		}
		var found struct {
			Spec struct {
				Service *struct{} `json:"service"`
			} `json:"spec"`
		}
		if err := json.Unmarshal(body, &found); err != nil {
			return false, fmt.Errorf("read APIService %s: %w", name, err)
		}
		return found.Spec.Service != nil, nil
	}
}
