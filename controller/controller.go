package controller

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes/scheme"
	typedadmissionregistrationv1 "k8s.io/client-go/kubernetes/typed/admissionregistration/v1"
	typedcoordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/kinds"
	"github.com/weir-dev/weir/policies/live"
)

// DefaultConcurrency bounds the requests under way at once. The API server's own limits, and 429s, decide
// how much of it is used.
const DefaultConcurrency = 64

// firstListsTimeout is how long workers wait for the first lists, so that owners are known before their
// dependents are judged. Kinds that need longer do not hold up the others: every decision is safe
// without them, it only costs lookups.
const firstListsTimeout = 30 * time.Second

// Options are what a Controller needs to know. The zero value of each field but Config is a default.
type Options struct {
	Config      *rest.Config
	Concurrency int                    // most requests under way at once; DefaultConcurrency
	Ignored     []schema.GroupResource // kinds to leave alone, besides events
	Namespaces  int                    // most namespaces drained at once; 0: none is, somebody else does it
	// Companion leaves collecting to the built-in collectors: only what policies ask for is done. Of
	// namespaces those are drained that a DrainPolicy selects; the namespace controller finds them empty.
	Companion bool
	// Home is the namespace that Weir runs in, empty if it is in none. In replace mode it is not drained: nobody would be left
	// to finish.
	Home     string
	Policies *live.State    // nil: there are none. Whoever made it runs it.
	Webhooks *WebhookTarget // nil: the webhook configurations are somebody else's
	Seals    Sealer         // of waves; nil: nobody keeps a key, and what is written is believed
	// BackFillQPS is how many objects are stamped in a second at most; 0: as many as there is room for.
	BackFillQPS float64
	// CompareEvery is in what time each kind in the graph is compared with the API once; DefaultCompareEvery.
	// Negative: never.
	CompareEvery time.Duration
	Registry     prometheus.Registerer // where the metrics go; nowhere
	Log          logr.Logger           // discards by default
}

// Controller collects garbage in one cluster: it follows every kind, and while it leads, deletes what
// nobody owns any more and honours foreground and orphan deletion.
type Controller struct {
	options   Options
	store     *store
	watcher   *watcher
	comparer  *comparer
	workers   *workers
	drainer   *drainer
	enforced  *enforcement // nil without policies
	requester *requester
	leads     atomic.Bool // its work has begun
	events    record.EventBroadcaster
	sink      typedcorev1.EventInterface
}

// New prepares a Controller. Nothing is sent to the API server before Follow.
func New(o Options) (*Controller, error) {
	if o.Config == nil {
		return nil, errors.New("make a controller: no API server is configured")
	}
	if o.Concurrency <= 0 {
		o.Concurrency = DefaultConcurrency
	}
	if o.Registry == nil {
		o.Registry = prometheus.NewRegistry()
	}
	config := rest.CopyConfig(o.Config)
	config.QPS, config.Burst = -1, 0 // requests adapt (limiter); watches and discovery are few
	theirs := &live.Clock{}
	config.Wrap(theirs.Wrap)
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("make a controller: %w", err)
	}
	// Only what watches may wait for as long as it likes, and requester has deadlines of its own.
	bounded := rest.CopyConfig(config)
	bounded.Timeout = requestTimeout
	boundedClient, err := rest.HTTPClientFor(bounded)
	if err != nil {
		return nil, fmt.Errorf("make a controller: %w", err)
	}
	discoveryClient := *boundedClient
	discoveryClient.Timeout = discoveryTimeout
	disco, err := discovery.NewDiscoveryClientForConfigAndClient(bounded, &discoveryClient)
	if err != nil {
		return nil, fmt.Errorf("make a discovery client: %w", err)
	}
	meta, err := metadata.NewForConfigAndClient(config, &http.Client{Transport: &witness{httpClient.Transport}, Timeout: httpClient.Timeout})
	if err != nil {
		return nil, fmt.Errorf("make a metadata client: %w", err)
	}
	core, err := typedcorev1.NewForConfigAndClient(bounded, boundedClient)
	if err != nil {
		return nil, fmt.Errorf("make an events client: %w", err)
	}
	m := newMetrics(o.Registry)
	s := newStore()
	l := newLimiter(o.Concurrency)
	h := newHistory(meta, o.Log)
	guarded := func(c *http.Client) *http.Client {
		return &http.Client{Transport: &guard{next: c.Transport, history: h}, Timeout: c.Timeout}
	}
	req, err := newRequester(config, guarded(httpClient), l, m)
	if err != nil {
		return nil, err
	}
	req.history = h
	c := &Controller{options: o, store: s, requester: req, events: record.NewBroadcaster(), sink: core.Events("")}
	rep := newReporter(
		c.events.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "weir"}),
		c.events.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "garbage-collector-controller"}),
		req.kindOf)
	c.watcher = newWatcher(disco, meta, s, kinds.Ignored.Union(sets.New(o.Ignored...)), req.serve, o.Log, m)
	if o.CompareEvery == 0 {
		o.CompareEvery = DefaultCompareEvery
	}
	c.comparer = &comparer{watcher: c.watcher, requester: req, store: s, every: o.CompareEvery, metrics: m, log: o.Log}
	c.watcher.history = h
	h.aggregated, h.restart = aggregated(disco.RESTClient()), c.watcher.restart
	h.rewind = func(ctx context.Context, why string) {
		o.Log.Error(nil, "the API server's history went back, as after a restore from a backup: everything is listed anew, and nothing is deleted until that is done", "why", why)
		m.rewound.Inc()
		rep.rewound(why)
		c.watcher.rewind(ctx, why)
	}
	c.workers = newWorkers(s, req, rep, m, o.Log)
	if o.Namespaces > 0 {
		leases, err := typedcoordinationv1.NewForConfigAndClient(bounded, boundedClient)
		if err != nil {
			return nil, fmt.Errorf("make a leases client: %w", err)
		}
		admission, err := typedadmissionregistrationv1.NewForConfigAndClient(config, httpClient)
		if err != nil {
			return nil, fmt.Errorf("make a client for webhook configurations: %w", err)
		}
		spaces, err := typedcorev1.NewForConfigAndClient(bounded, guarded(boundedClient))
		if err != nil {
			return nil, fmt.Errorf("make a client for namespaces: %w", err)
		}
		c.drainer = newDrainer(&drainer{
			store: s, requester: req, reporter: rep, discoveries: c.watcher.discoveries, undiscovered: c.watcher.undiscovered,
			clock: theirs, seals: o.Seals, foreign: &foreign{client: admission, store: s}, namespaces: spaces.Namespaces(), leases: leases, policies: o.Policies, home: o.Home, companion: o.Companion, log: o.Log,
		})
		c.watcher.namespace = c.drainer.changed
		c.watcher.webhooks = c.drainer.foreign.changed
		c.workers.later = c.drainer.later
	}
	if o.Policies != nil {
		if c.enforced, err = newEnforcement(o, bounded, boundedClient, s, req, rep, c.watcher.undiscovered); err != nil {
			return nil, err
		}
		c.watcher.terminating = c.enforced.shaper.terminating
	}
	if err := o.Registry.Register(newGraphMetrics(s.stats, c.leads.Load, c.workers.ages.oldest, l)); err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	if err := o.Registry.Register(newEndingMetrics(s)); err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	return c, nil
}

// Follow watches the cluster until ctx ends. Every replica does.
func (c *Controller) Follow(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { c.tidy(ctx) })
	if c.comparer.every > 0 {
		wg.Go(func() { c.comparer.run(ctx) })
	}
	c.watcher.run(ctx)
	return nil
}

// tidy gives back what the first lists needed: the whole objects, of which the graph keeps a tenth. The
// runtime would by and by.
func (c *Controller) tidy(ctx context.Context) {
	if c.awaitLists(ctx) {
		select {
		case <-time.After(time.Second): // the reflectors let go of their lists
			debug.FreeOSMemory()
		case <-ctx.Done():
		}
	}
}

// Lead carries out what follows from the graph until ctx ends. Only one replica may, and Follow must be
// running.
func (c *Controller) Lead(ctx context.Context) error {
	c.events.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: c.sink})
	defer c.events.Shutdown()
	defer c.workers.queue.ShutDown() // workers do it, where there are any
	began := time.Now()
	if !c.awaitLists(ctx) {
		return nil
	}
	c.leads.Store(true)
	defer c.leads.Store(false)
	st := c.store.stats()
	c.options.Log.Info("leading", "collecting", !c.options.Companion, "objects", st.Objects, "waited", time.Since(began).Round(time.Millisecond).String())
	var wg sync.WaitGroup
	if c.drainer != nil {
		wg.Go(func() { c.drainer.run(ctx, c.options.Namespaces) })
	}
	if c.enforced != nil {
		wg.Go(func() { c.enforced.run(ctx) })
	}
	if !c.options.Companion {
		// As many again as there are places: requests that hang hold a worker, and are not counted for long.
		wg.Go(func() { c.workers.run(ctx, 2*c.options.Concurrency) })
	}
	wg.Wait()
	return nil
}

// awaitLists waits until every kind has been listed or has failed to be, but not for ever. False: ctx
// ended first.
func (c *Controller) awaitLists(ctx context.Context) bool {
	ctx, cancel := context.WithTimeoutCause(ctx, firstListsTimeout, errListsTimeout)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for c.Ready() != nil {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errors.Is(context.Cause(ctx), errListsTimeout)
		}
	}
	return true
}

var errListsTimeout = errors.New("some kinds take long to list")

// Ready says why the graph is not complete yet: nil once every kind has been listed, or has failed to
// be and is reported elsewhere.
func (c *Controller) Ready() error {
	st := c.store.stats()
	if len(st.Kinds) == 0 {
		return errors.New("waiting for discovery")
	}
	for _, k := range st.Kinds {
		if k.State == graph.Listing {
			return fmt.Errorf("waiting for the first list of %s", k.GroupResource())
		}
	}
	return nil
}

// GraphHandler serves the ownership graph as DOT; see GraphPath. It does no authentication.
func (c *Controller) GraphHandler() http.Handler { return graphHandler(c.store) }
