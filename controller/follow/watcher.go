package follow

import (
	"context"
	"fmt"
	"net/http"
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
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/kinds"
	"github.com/weir-dev/weir/controller/metaonly"
)

// discoveryPeriod is the reference's (RB 1.6). It is a safety net: CRDs and APIServices are
// watched.
const discoveryPeriod = 30 * time.Second

// DiscoveryRetry is the pause after a discovery that failed as a whole.
const DiscoveryRetry = 5 * time.Second

// settle are the delays after a change at which discovery runs: the API server takes up to a few
// seconds to serve what a CRD or an APIService promises.
var settle = []time.Duration{0, 100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2 * time.Second, 4 * time.Second}

// grace is how long a kind that vanished is still followed: deletions of its last objects may be on
// their way.
const grace = time.Second

// Watcher runs one reflector for each kind that can be collected.
type Watcher struct {
	discovery discovery.DiscoveryInterface
	Metadata  metadata.Interface
	watches   metadata.Interface // of whole kinds, for the reflectors
	store     *Store
	History   *History
	ignored   sets.Set[schema.GroupResource]
	log       logr.Logger
	metrics   *metrics
	listeners listeners
	page      int64 // how many objects a page of a list has

	poke        chan struct{} // something changed: ask discovery now
	Discoveries *discoveries
	showing     showing
	kindsOnly   atomic.Bool // see RunKinds

	// turns is held while reflectors start, either for a discovery or for a rewind.
	turns   sync.Mutex
	mu      sync.Mutex
	unknown []string // group versions that do not answer and whose kinds are not known
	running map[schema.GroupResource]*kindWatch
	wg      sync.WaitGroup
}

type kindWatch struct {
	gvr      schema.GroupVersionResource
	follower *follower
	leaving  bool
	cancel   context.CancelFunc
	done     chan struct{}
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
	requests := &http.Client{Transport: &witness{client.Transport}, Timeout: client.Timeout}
	m, err := metadata.NewForConfigAndClient(config, requests)
	if err != nil {
		return nil, fmt.Errorf("make a metadata client: %w", err)
	}
	connections, err := metaonly.Connections(config)
	if err != nil {
		return nil, err
	}
	w := NewWatcher(d, m, s, ignored, log, reg)
	w.watches, err = metaonly.New(m, config, requests,
		&http.Client{Transport: &witness{connections.Transport}, Timeout: connections.Timeout})
	return w, err
}

// NewWatcher returns a Watcher that uses these clients.
func NewWatcher(
	d discovery.DiscoveryInterface, m metadata.Interface, s *Store, ignored sets.Set[schema.GroupResource],
	log logr.Logger, reg prometheus.Registerer,
) *Watcher {
	w := &Watcher{
		discovery: d, Metadata: m, watches: m, store: s, ignored: ignored, log: log, metrics: newMetrics(reg),
		page: listPage, poke: make(chan struct{}, 1), Discoveries: newDiscoveries(),
		showing: showing{wake: make(chan struct{}, 1)}, running: map[schema.GroupResource]*kindWatch{},
	}
	w.History = newHistory(d, w, log)
	return w
}

// Listen adds a listener. It must be called before Run.
func (w *Watcher) Listen(l Listener) { w.listeners = append(w.listeners, l) }

// Run follows all kinds until ctx ends, and then joins every reflector.
func (w *Watcher) Run(ctx context.Context) { w.run(ctx, nil) }

// run follows all kinds, but until all is closed only those of RunKinds.
func (w *Watcher) run(ctx context.Context, all <-chan struct{}) {
	defer w.wg.Wait()
	w.wg.Go(func() { w.History.run(ctx) })
	w.wg.Go(func() { w.show(ctx) })
	w.wg.Go(func() { w.listHourly(ctx) })
	var known []graph.Resource
	failed := false // as a whole: no namespace can go before it succeeds
	refresh := func() {
		began := w.Discoveries.begins()
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
			w.Follow(ctx, known)
			err = nil // what did not answer is in unknown
		}
		failed = err != nil
		w.Discoveries.ended(began, err)
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
		case <-all:
			all = nil
			w.kindsOnly.Store(false)
		case <-w.Discoveries.asked:
			select {
			case <-ctx.Done():
				return
			case <-w.poke:
				step, poked = 0, time.Now()
			case <-time.After(w.Discoveries.rest()):
			}
		case <-timer.C:
		}
		refresh()
		var next time.Duration
		next, step = settling(step, poked)
		switch {
		case len(known) == 0:
			next = time.Second
		case failed:
			next = min(next, DiscoveryRetry)
		}
		timer.Reset(next)
	}
}

// settling returns how long to wait for the next of the settle delays after a change, from step on,
// and which it is; discoveryPeriod if all are over.
func settling(step int, changed time.Time) (wait time.Duration, next int) {
	for ; step < len(settle); step++ {
		if wait := time.Until(changed.Add(settle[step])); wait > 0 {
			return wait, step
		}
	}
	return discoveryPeriod, step
}

// ask makes discovery run soon.
func (w *Watcher) ask() {
	select {
	case w.poke <- struct{}{}:
	default:
	}
}

// Follow makes the reflectors match what is served.
func (w *Watcher) Follow(ctx context.Context, resources []graph.Resource) {
	w.listeners.served(resources)
	w.turns.Lock()
	defer w.turns.Unlock()
	w.store.Apply(graph.Serving{Resources: resources})
	w.mu.Lock()
	defer w.mu.Unlock()
	wanted := sets.New[schema.GroupResource]()
	for _, r := range resources {
		gr := r.GroupResource()
		if !r.Collected || !w.Follows(gr) {
			continue
		}
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

// Wait joins every reflector, after the context of Follow has ended.
func (w *Watcher) Wait() { w.wg.Wait() }

func (w *Watcher) startLocked(ctx context.Context, gvr schema.GroupVersionResource) {
	gr := gvr.GroupResource()
	watchCtx, cancel := context.WithCancel(ctx)
	k := &kindWatch{gvr: gvr, cancel: cancel, done: make(chan struct{})}
	w.running[gr] = k
	f := &Feed{Kind: gr, Store: w.store, listeners: w.listeners}
	switch gr {
	case kinds.APIServices:
		f.seen = func(*metav1.PartialObjectMetadata, Change) { w.ask() }
	case kinds.Definitions:
		f.seen = func(m *metav1.PartialObjectMetadata, how Change) { w.crdChanged(ctx, m.Name, how == Went) }
	case kinds.Namespaces:
		f.seen = func(m *metav1.PartialObjectMetadata, how Change) { w.listeners.namespace(m.Name, how) }
	}
	client := w.watches
	if gr == kinds.Namespaces { // on the connection of requests, so that its end is noticed
		client = w.Metadata
	}
	k.follower = newFollower(f, gvr, client, w.History, w.log)
	k.follower.page, k.follower.contact = w.page, gr == kinds.Namespaces
	w.log.V(1).Info("watching", "kind", gvr.String())
	w.wg.Go(func() {
		defer close(k.done)
		k.follower.run(watchCtx)
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
	w.ask()
}

// leaveLocked ends the watch of a kind after a while, and has discovery say whether it starts
// again.
func (w *Watcher) leaveLocked(ctx context.Context, gr schema.GroupResource, after time.Duration) {
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
		w.left(gr)
	})
}

// followers returns the followers of the kinds that are watched.
func (w *Watcher) followers() (all []*follower) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, k := range w.running {
		if !k.leaving {
			all = append(all, k.follower)
		}
	}
	return all
}

// doubt forgets which objects of a kind were seen to go: they are looked up.
func (w *Watcher) doubt(kind schema.GroupResource) { w.store.Apply(graph.KindRewound{Kind: kind}) }

// wentBack reports that the history of the API server went back, and forgets all that was seen.
func (w *Watcher) wentBack(ctx context.Context, why string) {
	w.log.Error(nil, "the API server's history went back, as after a restore from a backup: "+
		"everything is listed again, and nothing is deleted until that is done", "why", why)
	w.metrics.rewound.Inc()
	w.listeners.rewound(why)
	w.rewind(ctx, why)
}

// rewind ends all watches, forgets what they have shown, and starts again. Nothing that was seen
// before may reach the graph after it has forgotten.
func (w *Watcher) rewind(ctx context.Context, reason string) {
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
	w.store.Apply(graph.Rewound{Reason: reason})
	w.showing.forget()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, k := range running {
		if !k.leaving { // for the others discovery decides
			w.startLocked(ctx, k.gvr)
		}
	}
	w.ask()
}

// kindWentBack ends the watch of a kind whose history went back, forgets what was seen of it, and
// has it listed again. Nothing that was seen before may reach the graph after it has forgotten.
func (w *Watcher) kindWentBack(kind schema.GroupResource) {
	w.mu.Lock()
	k := w.running[kind]
	leaves := k == nil || k.leaving
	if k != nil {
		k.leaving = true
	}
	w.mu.Unlock()
	if k != nil {
		k.cancel()
		<-k.done
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
	w.ask()
}

// Undiscovered returns the group versions that do not answer and of which nothing is known.
func (w *Watcher) Undiscovered() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.unknown
}
