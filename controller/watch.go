package controller

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/kinds"
)

var (
	crds        = schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}
	namespaces  = schema.GroupResource{Resource: "namespaces"}
	apiServices = schema.GroupResource{Group: "apiregistration.k8s.io", Resource: "apiservices"}
)

// discoveryPeriod is the reference's (RB 1.6). It is only the safety net: changes to CRDs and
// APIServices are watched.
const discoveryPeriod = 30 * time.Second

// discoveryRetry is the pause after a discovery of which nothing was learned.
const discoveryRetry = 5 * time.Second

// settle are the delays after a change at which discovery is asked again: the API server takes up to a
// few seconds to serve what a CRD or an APIService promises.
var settle = []time.Duration{0, 100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2 * time.Second, 4 * time.Second}

// grace is how long a vanished kind is still followed: the deletions of its last objects may be on
// their way.
const grace = time.Second

// watcher keeps one reflector per kind that can be collected.
type watcher struct {
	discovery discovery.DiscoveryInterface
	metadata  metadata.Interface
	store     *store
	history   *history
	ignored   sets.Set[schema.GroupResource]
	log       logr.Logger
	metrics   *metrics
	served    func([]graph.Resource) // told of each discovery before the graph is
	namespace func(string, change)   // told of each change to a namespace; may be nil
	// terminating is told of each object that is seen to terminate; may be nil.
	terminating func(*metav1.PartialObjectMetadata)
	webhooks    func() // told of each change to a webhook configuration; may be nil

	poke        chan struct{} // something changed: ask discovery now
	discoveries *discoveries

	// turns lets reflectors be started for what discovery shows, or all anew, but not both at once.
	turns   sync.Mutex
	mu      sync.Mutex
	unknown []string // group versions that do not answer and whose kinds are not known
	running map[schema.GroupResource]*kindWatch
	wg      sync.WaitGroup
}

type kindWatch struct {
	gvr     schema.GroupVersionResource
	feed    *feed
	leaving bool
	cancel  context.CancelFunc
	done    chan struct{}
}

func newWatcher(d discovery.DiscoveryInterface, m metadata.Interface, s *store, ignored sets.Set[schema.GroupResource], served func([]graph.Resource), log logr.Logger, ms *metrics) *watcher {
	return &watcher{
		discovery: d, metadata: m, store: s, history: newHistory(m, log), ignored: ignored, served: served, log: log, metrics: ms,
		poke: make(chan struct{}, 1), discoveries: newDiscoveries(), running: map[schema.GroupResource]*kindWatch{},
	}
}

// run follows all kinds until ctx ends, and then joins every reflector.
func (w *watcher) run(ctx context.Context) {
	defer w.wg.Wait()
	w.history.kinds = w.followed
	w.wg.Go(func() { w.history.run(ctx) })
	var known []graph.Resource
	failed := false // as a whole: no namespace can go before it succeeds
	refresh := func() {
		began := w.discoveries.begins()
		found, unknown, err := kinds.Discover(w.discovery, w.ignored, known)
		if err != nil {
			w.metrics.discoveryErrors.Inc()
			w.log.Info("discovery is incomplete", "err", err.Error())
		}
		if found != nil {
			known = found
			w.mu.Lock()
			w.unknown = unknown
			w.mu.Unlock()
			w.follow(ctx, known)
			err = nil // what did not answer is in unknown
		}
		failed = err != nil
		w.discoveries.ended(began, err)
	}
	refresh()
	timer := time.NewTimer(discoveryPeriod)
	defer timer.Stop()
	step, poked := 0, time.Time{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.poke:
			step, poked = 0, time.Now()
		case <-w.discoveries.asked:
			select {
			case <-ctx.Done():
				return
			case <-w.poke:
				step, poked = 0, time.Now()
			case <-time.After(w.discoveries.rest()):
			}
		case <-timer.C:
		}
		refresh()
		next := discoveryPeriod
		for ; step < len(settle); step++ {
			if until := time.Until(poked.Add(settle[step])); until > 0 {
				next = until
				break
			}
		}
		switch {
		case len(known) == 0:
			next = time.Second
		case failed:
			next = min(next, discoveryRetry)
		}
		timer.Reset(next)
	}
}

// ask makes discovery run soon.
func (w *watcher) ask() {
	select {
	case w.poke <- struct{}{}:
	default:
	}
}

// follow makes the reflectors match what is served.
func (w *watcher) follow(ctx context.Context, resources []graph.Resource) {
	w.served(resources)
	w.turns.Lock()
	defer w.turns.Unlock()
	w.store.apply(graph.Serving{Resources: resources})
	w.mu.Lock()
	defer w.mu.Unlock()
	wanted := sets.New[schema.GroupResource]()
	for _, r := range resources {
		if !r.Collected {
			continue
		}
		gr := r.GroupResource()
		wanted.Insert(gr)
		gvr := gr.WithVersion(r.Version)
		switch k := w.running[gr]; {
		case k == nil:
			w.startLocked(ctx, gvr)
		case k.gvr != gvr:
			w.leaveLocked(ctx, gr, 0)
		}
	}
	for gr := range w.running {
		if !wanted.Has(gr) {
			w.leaveLocked(ctx, gr, grace)
		}
	}
}

func (w *watcher) startLocked(ctx context.Context, gvr schema.GroupVersionResource) {
	gr := gvr.GroupResource()
	watchCtx, cancel := context.WithCancel(ctx)
	k := &kindWatch{gvr: gvr, cancel: cancel, done: make(chan struct{})}
	w.running[gr] = k
	f := &feed{kind: gr, store: w.store, terminating: w.terminating}
	k.feed = f
	switch gr {
	case apiServices:
		f.seen = func(string, change) { w.ask() }
	case crds:
		f.seen = func(name string, how change) { w.crdChanged(ctx, name, how == went) }
	case namespaces:
		f.seen = w.namespace
	case mutatingConfigurations, validatingConfigurations:
		if w.webhooks != nil {
			f.seen = func(string, change) { w.webhooks() }
		}
	}
	w.log.V(1).Info("watching", "kind", gvr.String())
	w.wg.Go(func() {
		defer close(k.done)
		newFollower(f, gvr, w.metadata, w.history, w.log).run(watchCtx, w.metadata)
	})
}

// crdChanged reacts to a CRD. When one is deleted its watch must end even if discovery never shows the
// gap: a CRD of the same name has other storage behind it.
func (w *watcher) crdChanged(ctx context.Context, name string, gone bool) {
	if plural, group, ok := strings.Cut(name, "."); ok && gone {
		w.mu.Lock()
		w.leaveLocked(ctx, schema.GroupResource{Group: group, Resource: plural}, grace)
		w.mu.Unlock()
	}
	w.ask()
}

// leaveLocked ends the watch of a kind after a while, and asks discovery whether it is to start again.
func (w *watcher) leaveLocked(ctx context.Context, gr schema.GroupResource, after time.Duration) {
	k := w.running[gr]
	if k == nil || k.leaving {
		return
	}
	k.leaving = true
	w.wg.Go(func() {
		select {
		case <-ctx.Done():
		case <-time.After(after):
		}
		k.cancel()
		<-k.done
		w.store.apply(graph.Stopped{Kind: gr})
		w.mu.Lock()
		delete(w.running, gr)
		w.mu.Unlock()
		w.log.V(1).Info("stopped watching", "kind", k.gvr.String())
		w.ask()
	})
}

// followed is a kind and what feeds it.
type followed struct {
	gvr  schema.GroupVersionResource
	feed *feed
}

// followed are the kinds that are watched, sorted.
func (w *watcher) followed() []followed {
	w.mu.Lock()
	defer w.mu.Unlock()
	kinds := make([]followed, 0, len(w.running))
	for _, k := range w.running {
		if !k.leaving {
			kinds = append(kinds, followed{k.gvr, k.feed})
		}
	}
	slices.SortFunc(kinds, func(a, b followed) int { return cmp.Compare(a.feed.kind.String(), b.feed.kind.String()) })
	return kinds
}

// rewind ends all watches, forgets what they have shown, and begins anew. Nothing that was seen before may reach the graph
// after it has forgotten.
func (w *watcher) rewind(ctx context.Context, reason string) {
	w.turns.Lock()
	defer w.turns.Unlock()
	w.mu.Lock()
	var running []*kindWatch
	for _, k := range w.running {
		k.cancel()
		running = append(running, k)
	}
	w.mu.Unlock()
	for _, k := range running {
		<-k.done
	}
	w.store.apply(graph.Rewound{Reason: reason})
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, k := range running {
		if !k.leaving { // those are begun again, or not, when they have left
			w.startLocked(ctx, k.gvr)
		}
	}
	w.ask()
}

// restart lists one kind anew, and forgets what was seen of it.
func (w *watcher) restart(ctx context.Context, kind schema.GroupResource) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.leaveLocked(ctx, kind, 0)
}

// undiscovered are the group versions that do not answer and of which nothing is known.
func (w *watcher) undiscovered() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.unknown
}
