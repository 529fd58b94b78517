package controller

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes/scheme"
	typedcoordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"

	"github.com/weir-dev/weir/controller/graph"
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
	Policies  *live.State    // nil: there are none. Whoever made it runs it.
	Webhooks  *WebhookTarget // nil: the webhook configurations are somebody else's
	// BackFillQPS is how many objects are stamped in a second; DefaultBackFillQPS.
	BackFillQPS float64
	Registry    prometheus.Registerer // where the metrics go; nowhere
	Log         logr.Logger           // discards by default
}

// Controller collects garbage in one cluster: it follows every kind, and while it leads, deletes what
// nobody owns any more and honours foreground and orphan deletion.
type Controller struct {
	options   Options
	store     *store
	watcher   *watcher
	workers   *workers
	drainer   *drainer
	enforced  *enforcement // nil without policies
	requester *requester
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
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("make a controller: %w", err)
	}
	disco, err := discovery.NewDiscoveryClientForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("make a discovery client: %w", err)
	}
	meta, err := metadata.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("make a metadata client: %w", err)
	}
	core, err := typedcorev1.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("make an events client: %w", err)
	}
	m := newMetrics(o.Registry)
	s := newStore()
	l := newLimiter(o.Concurrency)
	req, err := newRequester(config, httpClient, l, m)
	if err != nil {
		return nil, err
	}
	c := &Controller{options: o, store: s, requester: req, events: record.NewBroadcaster(), sink: core.Events("")}
	rep := newReporter(
		c.events.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "weir"}),
		c.events.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "garbage-collector-controller"}),
		req.kindOf)
	c.watcher = newWatcher(disco, meta, s, ignoredByDefault.Union(sets.New(o.Ignored...)), req.serve, o.Log, m)
	c.workers = newWorkers(s, req, rep, m, o.Log)
	if o.Namespaces > 0 {
		leases, err := typedcoordinationv1.NewForConfigAndClient(config, httpClient)
		if err != nil {
			return nil, fmt.Errorf("make a leases client: %w", err)
		}
		c.drainer = newDrainer(&drainer{
			store: s, requester: req, reporter: rep, undiscovered: c.watcher.undiscovered,
			namespaces: core.Namespaces(), leases: leases, policies: o.Policies, companion: o.Companion, log: o.Log,
		})
		c.watcher.namespace = c.drainer.changed
		c.workers.later = c.drainer.later
	}
	if o.Policies != nil {
		if c.enforced, err = newEnforcement(o, config, httpClient, s, req, rep); err != nil {
			return nil, err
		}
		c.watcher.terminating = c.enforced.shaper.terminating
	}
	if err := o.Registry.Register(newGraphMetrics(s.stats, c.workers.ages.oldest, l.bound)); err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	return c, nil
}

// Follow watches the cluster until ctx ends. Every replica does.
func (c *Controller) Follow(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { c.tidy(ctx) })
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
	began := time.Now()
	if !c.awaitLists(ctx) {
		return nil
	}
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
		wg.Go(func() { c.workers.run(ctx, c.options.Concurrency) })
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
