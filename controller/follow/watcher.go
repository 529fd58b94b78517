package follow

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/weir-dev/weir/controller/await"
	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/kinds"
	"github.com/weir-dev/weir/controller/metaonly"
)

// discoveryPeriod is the reference's (RB 1.6). It is a safety net: CRDs and APIServices are
// watched.
const discoveryPeriod = 30 * time.Second

// DiscoveryRetry is the pause after a discovery that failed as a whole.
const DiscoveryRetry = 5 * time.Second

// After a change discovery runs at once, then after settle, and twice as long each time up to
// settled: the API server takes up to a few seconds to serve what a CRD or an APIService promises.
const settle, settled = 100 * time.Millisecond, 4 * time.Second

// grace is how long a kind that vanished is still followed: deletions of its last objects may be on
// their way.
const grace = time.Second

// Watcher runs one reflector for each kind that can be collected.
type Watcher struct {
	discovery discovery.DiscoveryInterface
	requests  *metaonly.Client // on the connection of requests: of namespaces, so that its end is noticed
	others    *metaonly.Client // of the other kinds
	store     *Store
	History   *History
	ignored   sets.Set[schema.GroupResource]
	log       logr.Logger
	metrics   *metrics
	listener  Listener
	page      int64 // how many objects a page of a list has

	poke        chan struct{} // something changed: ask discovery now
	Discoveries *discoveries
	kindsOnly   atomic.Bool // see RunKinds

	mu        sync.Mutex
	rewinding bool     // no follower starts
	unknown   []string // group versions that do not answer and whose kinds are not known
	showing   showing
	running   map[schema.GroupResource]*follower
	wg        sync.WaitGroup
}

// New returns a Watcher that follows the cluster's kinds, except ignored ones, into a store. The
// client's limits apply to lists and watches.
func New(
	config *rest.Config, client *http.Client, s *Store, ignored sets.Set[schema.GroupResource],
	log logr.Logger, reg prometheus.Registerer,
) (*Watcher, error) {
	discoveryClient := *client
	discoveryClient.Timeout = discoveryTimeout
	d, err := discovery.NewDiscoveryClientForConfigAndClient(config, &discoveryClient)
	if err != nil {
		return nil, fmt.Errorf("make a discovery client: %w", err)
	}
	requests, err := metaonly.New(config, client, client)
	if err != nil {
		return nil, err
	}
	connections, err := metaonly.Connections(config)
	if err != nil {
		return nil, err
	}
	w := NewWatcher(d, requests, s, ignored, log, reg)
	w.others, err = metaonly.New(config, client, connections)
	return w, err
}

// NewWatcher returns a Watcher that uses these clients.
func NewWatcher(
	d discovery.DiscoveryInterface, m *metaonly.Client, s *Store, ignored sets.Set[schema.GroupResource],
	log logr.Logger, reg prometheus.Registerer,
) *Watcher {
	w := &Watcher{
		discovery: d, requests: m, others: m, store: s, ignored: ignored, log: log, metrics: newMetrics(reg),
		page: listPage, poke: make(chan struct{}, 1), Discoveries: newDiscoveries(),
		showing: showing{wake: make(chan struct{}, 1)}, running: map[schema.GroupResource]*follower{},
	}
	w.History = newHistory(w, log)
	return w
}

// Run follows all kinds until ctx ends, and then joins every reflector.
func (w *Watcher) Run(ctx context.Context) { w.run(ctx, nil) }

// RunKinds discovers which kinds there are, and does what Run does once all is closed. Until then
// it follows only the kinds whose objects say what is served, which spares an event for each write
// to the cluster. The graph takes the other kinds as not listed yet, and answers "not known" about
// their objects.
func (w *Watcher) RunKinds(ctx context.Context, all <-chan struct{}) {
	w.kindsOnly.Store(true)
	w.run(ctx, all)
}

// Follows reports whether the objects of a kind are followed.
func (w *Watcher) Follows(kind schema.GroupResource) bool {
	return !w.kindsOnly.Load() || tellsKinds(kind)
}

// tellsKinds reports whether objects of a kind say which kinds are served.
func tellsKinds(kind schema.GroupResource) bool {
	return kind == kinds.Definitions || kind == kinds.APIServices
}

// run follows all kinds, but until all is closed only those of RunKinds.
func (w *Watcher) run(ctx context.Context, all <-chan struct{}) {
	defer w.wg.Wait()
	w.wg.Go(func() { w.History.run(ctx) })
	w.wg.Go(func() { w.show(ctx) })
	w.wg.Go(func() { w.listHourly(ctx) })
	known, _ := w.discover(ctx, nil)
	timer := time.NewTimer(discoveryPeriod)
	defer timer.Stop()
	for next := settled; ; {
		select {
		case <-ctx.Done():
			return
		case <-w.poke:
			next = settle / 2
		case <-all:
			all = nil
			w.kindsOnly.Store(false)
		case <-w.Discoveries.asked:
			select {
			case <-ctx.Done():
				return
			case <-w.poke:
				next = settle / 2
			case <-time.After(w.Discoveries.rest()):
			}
		case <-timer.C:
		}
		var failed bool
		known, failed = w.discover(ctx, known)
		pause := discoveryPeriod
		if next < settled {
			next *= 2
			pause = next
		}
		switch {
		case len(known) == 0:
			pause = time.Second
		case failed:
			pause = min(pause, DiscoveryRetry)
		}
		timer.Reset(pause)
	}
}

// discover follows the kinds that are served, and returns them; those that were known before if
// nothing was learned. Then failed is true: no namespace can go before it succeeds.
func (w *Watcher) discover(ctx context.Context, known []graph.Resource) (found []graph.Resource, failed bool) {
	began := w.Discoveries.begins()
	found, unknown, err := kinds.Discover(w.discovery, w.ignored, known)
	if err != nil {
		w.metrics.discoveryErrors.Inc()
		w.log.Info("discovery is incomplete", "err", err.Error())
	}
	if found == nil {
		w.Discoveries.ended(began, err)
		return known, true
	}
	w.mu.Lock()
	w.unknown = unknown
	w.mu.Unlock()
	w.Follow(ctx, found)
	w.Discoveries.ended(began, nil) // what did not answer is in unknown
	return found, false
}

// Follow makes the reflectors match what is served. During a rewind it leaves that to the discovery
// that follows.
func (w *Watcher) Follow(ctx context.Context, resources []graph.Resource) {
	tell(w.listener.Served, resources)
	w.store.Apply(graph.Serving{Resources: resources})
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.rewinding {
		return
	}
	wanted := sets.New[schema.GroupResource]()
	for _, r := range resources {
		gr := r.GroupResource()
		if !r.Collected || !w.Follows(gr) {
			continue
		}
		wanted.Insert(gr)
		gvr := gr.WithVersion(r.Version)
		switch f := w.running[gr]; {
		case f == nil:
			w.startLocked(ctx, gvr)
		case f.gvr != gvr:
			w.leaveLocked(ctx, gr, 0)
		}
	}
	for gr := range w.running {
		if !wanted.Has(gr) {
			w.leaveLocked(ctx, gr, grace)
		}
	}
}

// Wait joins every reflector, after the context of Follow has ended.
func (w *Watcher) Wait() { w.wg.Wait() }

func (w *Watcher) startLocked(ctx context.Context, gvr schema.GroupVersionResource) {
	gr := gvr.GroupResource()
	within, stop := context.WithCancel(ctx)
	f := &follower{Kind: gr, gvr: gvr, store: w.store, resource: w.others.Kind(gvr, ""), history: w.History,
		log: w.log, listener: w.listener, page: w.page, stop: stop, stopped: make(chan struct{}), due: 1}
	switch gr {
	case kinds.APIServices:
		f.seen = func(*metav1.PartialObjectMetadata, Change) { await.Wake(w.poke) }
	case kinds.Definitions:
		f.seen = func(m *metav1.PartialObjectMetadata, how Change) { w.crdChanged(ctx, m.Name, how == Went) }
	case kinds.Namespaces:
		f.contact, f.resource = true, w.requests.Kind(gvr, "")
		if changed := w.listener.Namespace; changed != nil {
			f.seen = func(m *metav1.PartialObjectMetadata, how Change) { changed(m.Name, how) }
		}
	}
	w.running[gr] = f
	w.log.V(1).Info("watching", "kind", gvr.String())
	w.wg.Go(func() {
		defer close(f.stopped)
		f.run(within)
	})
}

// crdChanged reacts to a change of a CRD. When one is deleted its watch must end even if discovery
// never shows the gap: a CRD of the same name has other storage behind it.
func (w *Watcher) crdChanged(ctx context.Context, name string, gone bool) {
	if plural, group, ok := strings.Cut(name, "."); ok && gone {
		w.mu.Lock()
		w.leaveLocked(ctx, schema.GroupResource{Group: group, Resource: plural}, grace)
		w.mu.Unlock()
	}
	await.Wake(w.poke)
}

// leaveLocked ends the watch of a kind after a while, and has discovery say whether it starts
// again.
func (w *Watcher) leaveLocked(ctx context.Context, gr schema.GroupResource, after time.Duration) {
	f := w.running[gr]
	if f == nil || f.leaving {
		return
	}
	f.leaving = true
	w.wg.Go(func() {
		select {
		case <-ctx.Done():
		case <-time.After(after):
		}
		f.end()
		w.left(gr)
	})
}

// followers returns the followers of the kinds that are watched.
func (w *Watcher) followers() (all []*follower) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.running {
		if !f.leaving {
			all = append(all, f)
		}
	}
	return all
}

// wentBack reports that the history of the API server went back, and forgets all that was seen.
func (w *Watcher) wentBack(ctx context.Context, why string) {
	w.log.Error(nil, "the API server's history went back, as after a restore from a backup: "+
		"everything is listed again, and nothing is deleted until that is done", "why", why)
	w.metrics.rewound.Inc()
	tell(w.listener.Rewound, why)
	w.rewind(ctx, why)
}

// rewind ends all watches, forgets what they have shown, and starts again. Nothing that was seen
// before may reach the graph after it has forgotten. So no other follower starts meanwhile.
func (w *Watcher) rewind(ctx context.Context, reason string) {
	w.mu.Lock()
	w.rewinding = true
	running := slices.Collect(maps.Values(w.running))
	w.mu.Unlock()
	for _, f := range running {
		f.stop()
	}
	for _, f := range running {
		f.end()
	}
	w.store.Apply(graph.Rewound{Reason: reason})
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rewinding = false
	w.showing.wanted, w.showing.upTo = 0, 0 // resourceVersions went back, too
	for _, f := range running {
		if !f.leaving { // for the others discovery decides
			w.startLocked(ctx, f.gvr)
		}
	}
	await.Wake(w.poke)
}

// kindWentBack ends the watch of a kind whose history went back, forgets what was seen of it, and
// has it listed again. Nothing that was seen before may reach the graph after it has forgotten.
func (w *Watcher) kindWentBack(kind schema.GroupResource) {
	w.mu.Lock()
	f := w.running[kind]
	leaves := f == nil || f.leaving
	if f != nil {
		f.leaving = true
	}
	w.mu.Unlock()
	if f != nil {
		f.end()
	}
	w.store.Apply(graph.KindRewound{Kind: kind})
	if !leaves {
		w.left(kind)
	}
}

// left removes a kind whose watch has ended from the graph, and has discovery say whether it starts
// again.
func (w *Watcher) left(kind schema.GroupResource) {
	w.store.Apply(graph.Stopped{Kind: kind})
	w.mu.Lock()
	delete(w.running, kind)
	w.mu.Unlock()
	w.log.V(1).Info("stopped watching", "kind", kind.String())
	await.Wake(w.poke)
}

// Undiscovered returns the group versions that do not answer and of which nothing is known.
func (w *Watcher) Undiscovered() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.unknown
}
