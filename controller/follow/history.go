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

	"github.com/weir-dev/weir/controller/await"
	"github.com/weir-dev/weir/controller/graph"
)

// The reasons why a write is not sent.
var (
	ErrNoContact = errors.New("contact with the API server was lost: writes are paused until the kinds are listed " +
		"again, since its storage may have been restored")
	ErrRewound = errors.New("the API server's history went back: what was decided before is void")
)

const (
	// lookEvery is how often a closed gate is checked.
	lookEvery = 100 * time.Millisecond
	// listedWithin is how long the gate stays closed for kinds that are not listed, after the first
	// one is. It does not wait for a kind that was behind for sickAfter before contact was lost.
	listedWithin, sickAfter = 15 * time.Second, time.Minute
	// aggregatedWithin is the same for a kind of an aggregated API.
	aggregatedWithin = time.Second
	// apiServiceTimeout bounds a read of an APIService.
	apiServiceTimeout = 10 * time.Second
)

// History checks what every decision rests on: that the API server goes on from what was seen of
// it. After a restore from a backup objects are there again that were seen to go, with the uids and
// resourceVersions that requests carry as preconditions: no request would fail.
//
// It is a gate for writes. etcd is restored while all API servers are stopped, so the connection
// that requests go by ends before. Then the gate closes, and every kind is listed again by
// consistent reads. The history went back if a list is older than what was seen of its kind, or
// shows an object that was seen to go or at a later version. Then what was seen is forgotten, and
// what was decided is void. The gate opens when the kinds are listed. A kind that is not listed in
// time does not hold up the others: what was seen to go of it no longer counts, and is looked up.
//
// Each kind is compared only with itself: kinds may be in different storages, whose
// resourceVersions are unrelated.
type History struct {
	of  *Watcher
	log logr.Logger

	closed atomic.Bool
	wake   chan struct{}

	mu     sync.Mutex
	losses uint64                                 // how often contact was lost
	made   uint64                                 // how many of these losses have been made good
	opened await.Change                           // when the gate opens
	broken map[schema.GroupVersionResource]string // the kinds that contradict what was seen, and why

	round *round // of lists since contact was lost; nil while the gate is open. run's alone
}

// round is the lists that must end after contact was lost.
type round struct {
	losses uint64
	lists  map[*follower]uint64 // the list of each kind that has to end
	sick   map[*follower]bool   // kinds that are not waited for
	backAt time.Time            // when the first kind was listed
	sorted bool                 // kinds of aggregated APIs have been moved to sick
}

func newHistory(of *Watcher, log logr.Logger) *History {
	return &History{of: of, log: log, wake: make(chan struct{}, 1), broken: map[schema.GroupVersionResource]string{}}
}

type epochKey struct{}

// Mark records in a context the history that decisions under it rest on.
func (h *History) Mark(ctx context.Context) context.Context {
	return context.WithValue(ctx, epochKey{}, h.epoch())
}

// epoch returns how often something was forgotten. What was decided before is void.
func (h *History) epoch() uint32 {
	if h.of == nil {
		return 0
	}
	return h.of.store.History()
}

// Enter waits until the gate is open, and returns an error for what was decided in another history.
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

// admit is Enter without waiting, for the last moment before a write.
func (h *History) admit(ctx context.Context) error {
	if h.closed.Load() {
		return ErrNoContact
	}
	if epoch, ok := ctx.Value(epochKey{}).(uint32); ok && epoch != h.epoch() {
		return ErrRewound
	}
	return nil
}

// lost closes the gate until the kinds have been listed again.
func (h *History) lost() { h.shut(func() { h.losses++ }) }

// contradicted closes the gate because a kind contradicts what was seen of it.
func (h *History) contradicted(gvr schema.GroupVersionResource, why string) {
	h.shut(func() { h.broken[gvr] = why })
}

// shut closes the gate, notes why, and wakes run.
func (h *History) shut(note func()) {
	h.mu.Lock()
	h.closed.Store(true)
	note()
	h.mu.Unlock()
	await.Wake(h.wake)
}

// open opens the gate, unless contact was lost or a kind contradicted since losses were counted.
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

// look opens the gate if every kind that it waits for has been listed, and reports whether it did.
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
		h.of.store.Apply(graph.KindRewound{Kind: f.Kind})
	}
	return h.open(losses)
}

// begin has every kind listed again. A kind that was not listed, or was behind for long, is sick.
func (h *History) begin(losses uint64) *round {
	r := &round{losses: losses, lists: map[*follower]uint64{}, sick: map[*follower]bool{}}
	if h.round != nil {
		r.sick = h.round.sick
	}
	for _, f := range h.of.followers() {
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

// waits reports whether the gate has to stay closed for a list. It does not for lists of aggregated
// APIs: each has a history of its own, and many are late when an API server starts.
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
			if own, err := h.aggregated(ctx, f.gvr); err == nil && own {
				delete(r.lists, f)
				r.sick[f] = true
			}
		}
	}
	return len(r.missing()) > 0
}

// missing returns the kinds that are followed and not listed yet. The kind on the connection that
// requests go by must be watched, too: an API server that shuts down ends watches, but answers
// lists.
func (r *round) missing() (kinds []*follower) {
	for f, list := range r.lists {
		if !f.hasListed(list) {
			kinds = append(kinds, f)
		}
	}
	return kinds
}

// settle forgets what was seen of kinds that contradict it. back is true if everything was
// forgotten; done is false if that has to be tried again.
func (h *History) settle(ctx context.Context, broken map[schema.GroupVersionResource]string) (back, done bool) {
	for gvr, why := range broken {
		own, err := h.aggregated(ctx, gvr)
		switch {
		case err != nil:
			h.log.Info("cannot tell whose history went back",
				"kind", gvr.String(), "why", why, "err", err.Error())
			h.mu.Lock()
			maps.Copy(h.broken, broken)
			h.mu.Unlock()
			return false, false
		case own:
			h.log.Info("the history of an aggregated API went back, it is listed again",
				"kind", gvr.String(), "why", why)
			h.of.kindWentBack(gvr.GroupResource())
			delete(broken, gvr)
		default:
			h.of.wentBack(ctx, gvr.GroupResource().String()+": "+why)
			h.mu.Lock()
			clear(h.broken) // found by the lists before
			h.mu.Unlock()
			return true, true
		}
	}
	return false, true
}

// aggregated reports whether a kind is served by an API server of its own, with a history of its
// own: its APIService then names a Service. A cluster without aggregation has no APIServices.
func (h *History) aggregated(ctx context.Context, gvr schema.GroupVersionResource) (bool, error) {
	if gvr.Group == "" {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, apiServiceTimeout)
	defer cancel()
	name := gvr.Version + "." + gvr.Group
	services := h.of.discovery.RESTClient().Get().AbsPath("/apis/apiregistration.k8s.io/v1/apiservices", name)
	body, err := services.DoRaw(ctx)
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
