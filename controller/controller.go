package controller

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	typedadmissionregistrationv1 "k8s.io/client-go/kubernetes/typed/admissionregistration/v1"
	typedcoordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"

	"github.com/weir-dev/weir/controller/beside"
	"github.com/weir-dev/weir/controller/brake"
	"github.com/weir-dev/weir/controller/collect"
	"github.com/weir-dev/weir/controller/compare"
	"github.com/weir-dev/weir/controller/enforce"
	"github.com/weir-dev/weir/controller/events"
	"github.com/weir-dev/weir/controller/follow"
	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/leases"
	"github.com/weir-dev/weir/controller/namespaces"
	"github.com/weir-dev/weir/controller/request"
	"github.com/weir-dev/weir/internal/tools/shadow"
	"github.com/weir-dev/weir/policies/live"
)

// Defaults of Options, and where GraphHandler belongs on the metrics port.
const (
	DefaultConcurrency    = request.DefaultConcurrency
	DefaultNamespaceSyncs = namespaces.DefaultNamespaceSyncs
	DefaultCompareEvery   = compare.DefaultEvery
	GraphPath             = follow.GraphPath
	DefaultCanaryStands   = beside.DefaultStands
	DefaultShadowLate     = shadow.DefaultLate
)

// ErrOtherCollector ends Lead in replace mode: another garbage collector works in the cluster.
var ErrOtherCollector = beside.ErrOther

// Options are what a Controller needs to know. The zero value of each field but Config is a
// default.
type Options struct {
	Config      *rest.Config
	Concurrency int                    // most requests under way at once; DefaultConcurrency
	Ignored     []schema.GroupResource // kinds to leave alone, besides events
	Namespaces  int                    // most namespaces drained at once; 0: none is, another controller does it
	// Companion leaves collecting to the built-in collectors: only what policies ask for is done.
	// Of namespaces those are drained that a DrainPolicy selects; the namespace controller finds
	// them empty.
	Companion bool
	// Shadow sends nothing that changes anything: what Weir would collect is compared with what
	// others do. What they have not done after ShadowLate, shadow.DefaultLate if 0, is a
	// difference; ShadowReport is a file that tells. Namespaces, Companion, Policies, Webhooks and
	// Canary are not looked at.
	Shadow       bool
	ShadowLate   time.Duration
	ShadowReport string
	// Home is the namespace that Weir runs in, empty if it is in none. In replace mode it is not
	// drained: no process would be left to finish.
	Home     string
	Policies *live.State            // nil: there are none. Whoever made it runs it.
	Webhooks *enforce.WebhookTarget // nil: another process writes the webhook configurations
	Seals    namespaces.Sealer      // of waves; nil: there is no key, and what is written is believed
	// BackFillQPS is how many objects get the finalizer in a second at most; 0: as many as there is
	// room for.
	BackFillQPS float64
	// Canary is where the object is that tells whether another garbage collector works; empty: that
	// is not watched, nor is it recorded there which owners were seen to be deleted. In replace
	// mode nothing is collected beside another. CanaryStands is how long it must stand,
	// beside.DefaultStands if 0; with CanaryOnce Lead ends with ErrOtherCollector at once, instead
	// of waiting until the other does not work.
	Canary       string
	CanaryStands time.Duration
	CanaryOnce   bool
	// Migration is the Lease under which Weir, or a kube-controller-manager, collects: Lead waits
	// for it, and not for the canary. nil: Weir does not share the work.
	Migration *beside.Migration
	// Lease is that of the leader, which is told of what the watches show; nil: there is none.
	Lease *leases.Vacancy
	// Brake limits what is deleted without having been asked for; the zero value limits nothing. In
	// companion mode the built-in collector deletes, and is limited if BrakeUsers say who it is: a
	// webhook refuses what Guard holds.
	Brake      brake.Limits
	BrakeUsers []string
	// CompareEvery is in what time each kind in the graph is compared with the API once;
	// DefaultCompareEvery if 0. NeverCompare: it is not.
	CompareEvery time.Duration
	NeverCompare bool
	Registry     prometheus.Registerer // where the metrics go; nowhere
	Log          logr.Logger           // discards by default
}

// brakes tells whether what is inferred is limited: what this process deletes, or another collector
// that is known by its users.
func (o *Options) brakes() bool {
	return !o.Shadow && !o.Brake.Off() && (!o.Companion || len(o.BrakeUsers) > 0)
}

// Controller collects garbage in one cluster: it follows every kind, and while it leads, deletes
// what nothing owns any more and honours foreground and orphan deletion.
type Controller struct {
	*Following
	workers  *collect.Workers
	drainer  *namespaces.Drainer // nil: another controller empties namespaces
	enforced *enforce.Enforcer   // nil without policies
	canary   *beside.Canary      // nil: it is not watched whether another collector works
	brake    *brake.Brake        // nil: nothing is held
	shadow   *shadow.Shadow      // nil: what is decided is done
	began    atomic.Bool         // Lead has
	leads    atomic.Bool         // its work has begun
	events   record.EventBroadcaster
	sink     typedcorev1.EventInterface
}

// New prepares a Controller. Nothing is sent to the API server before Follow.
func New(o Options) (*Controller, error) {
	following, err := newFollowing(o)
	if err != nil {
		return nil, err
	}
	o = following.options // with defaults
	core, err := typedcorev1.NewForConfigAndClient(following.clients.bounded, following.clients.boundedClient)
	if err != nil {
		return nil, fmt.Errorf("make an events client: %w", err)
	}
	c := &Controller{Following: following, events: record.NewBroadcaster(), sink: core.Events("")}
	rep := events.New(
		c.events.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "weir"}),
		c.events.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "garbage-collector-controller"}),
		c.requester.KindOf)
	told := follow.Listener{Served: c.requester.Serve, Rewound: rep.Rewound}
	if o.Shadow {
		return c, c.inShadow(rep)
	}
	if o.Canary != "" {
		if c.canary, err = c.newCanary(rep); err != nil {
			return nil, err
		}
	}
	var others func(ref graph.Ref, awaited bool) bool
	if o.Namespaces > 0 {
		if c.drainer, err = c.newDrainer(rep); err != nil {
			return nil, err
		}
		told.Namespace, told.Webhooks, others = c.drainer.Changed, c.drainer.WebhooksChanged, c.drainer.Deletes
	}
	if c.canary != nil {
		others = either(others, c.canary.Is)
	}
	workers := collect.Options{Store: c.store, Requester: c.requester, Reporter: rep, Others: others,
		Beside: o.Companion, Shown: c.watcher.Shown, Log: o.Log, Registry: o.Registry}
	if err := c.limit(&workers, &told, rep); err != nil {
		return nil, err
	}
	told.Showing = o.leasesShown(told.Showing)
	c.workers = collect.New(workers)
	if o.Policies != nil {
		c.enforced, err = enforce.New(enforce.Options{
			Config: c.clients.bounded, Client: c.clients.boundedClient, Store: c.store, Watcher: c.watcher, Requester: c.requester, Reporter: rep,
			Enforced: c.workers.Enforced, Policies: o.Policies, Webhooks: o.Webhooks, Collects: !o.Companion, Drains: c.drainer != nil, FilesIn: o.Canary, Brake: c.brake, BackFillQPS: o.BackFillQPS, Registry: o.Registry, Log: o.Log,
		})
		if err != nil {
			return nil, err
		}
		told.Terminating = c.enforced.Terminating
	}
	c.listen(told)
	return c, c.register()
}

// limit makes the brake, where anything may be held: by limits of what is inferred, or by a policy;
// and tells the workers what policies guard.
func (c *Controller) limit(workers *collect.Options, told *follow.Listener, rep *events.Reporter) (err error) {
	limits := c.options.brakes()
	if p := c.options.Policies; p != nil {
		workers.Guards = func(kind schema.GroupResource) bool { return p.Set().Guards(kind) }
	}
	if !limits && c.options.Policies == nil {
		return nil
	}
	if c.brake, err = c.newBrake(rep); err != nil {
		return err
	}
	if limits {
		workers.Brake = c.brake
	}
	told.Going = c.brake.Going
	rewound := told.Rewound
	told.Rewound = func(why string) { rewound(why); c.brake.Rewound(why) }
	return nil
}

func (c *Controller) register() error {
	if err := c.options.Registry.Register(newLoadMetrics(c.leads.Load, c.workers.Oldest, c.limiter)); err != nil {
		return fmt.Errorf("register metrics: %w", err)
	}
	return nil
}

// ShadowHandler serves what was compared, in shadow mode; nil in others. It does no authentication.
func (c *Controller) ShadowHandler() http.Handler {
	if c.shadow == nil {
		return nil
	}
	return c.shadow.Handler()
}

// LocalOnly lets in programs that ask for an address of this machine, and no page in a browser.
func LocalOnly(next http.Handler) http.Handler { return shadow.Local(next) }

// inShadow prepares a Controller that decides, and sends nothing.
func (c *Controller) inShadow(rep *events.Reporter) error {
	o := c.options
	core, err := typedcorev1.NewForConfigAndClient(c.clients.bounded, c.clients.boundedClient)
	if err != nil {
		return fmt.Errorf("make a client for namespaces: %w", err)
	}
	c.shadow = shadow.New(shadow.Options{Store: c.store, Ready: c.watcher.Ready, Undiscovered: c.watcher.Undiscovered, Faults: c.comparer.Faults, Namespaces: core.Namespaces(),
		Late: o.ShadowLate, Report: o.ShadowReport, Registry: o.Registry, Log: o.Log})
	c.workers = collect.New(collect.Options{Store: c.store, Requester: c.requester, Reporter: rep, Shadow: c.shadow, Log: o.Log, Registry: o.Registry})
	c.listen(follow.Listener{Served: c.requester.Serve, Showing: c.shadow.Showing, Going: c.shadow.Going, Namespace: c.shadow.Namespace, Rewound: c.shadow.Rewound})
	return c.register()
}

// Guard holds what another garbage collector deletes past the limits; nil where nothing of others
// is held.
func (c *Controller) Guard() func(ctx context.Context, uid types.UID) string {
	if !c.options.brakes() || !c.options.Companion {
		return nil
	}
	return brake.NewGuard(c.brake, c.Ready).Holds
}

func (c *Controller) newBrake(rep *events.Reporter) (*brake.Brake, error) {
	client, err := dynamic.NewForConfigAndClient(c.clients.bounded, c.clients.boundedClient)
	if err != nil {
		return nil, fmt.Errorf("make a client for HeldCollections: %w", err)
	}
	o := c.options
	var limits brake.Limits // of what is inferred
	if o.brakes() {
		limits = o.Brake
	}
	var record dynamic.ResourceInterface
	if o.Canary != "" {
		own, err := dynamic.NewForConfigAndClient(c.clients.bounded, c.guarded(c.clients.boundedClient))
		if err != nil {
			return nil, fmt.Errorf("make a client for the record of deleted owners: %w", err)
		}
		record = own.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace(o.Canary)
	}
	return brake.New(brake.Options{Limits: limits, Beside: o.Companion, Record: record, Store: c.store,
		Client: client, Reporter: rep,
		Registry: o.Registry, Log: o.Log}), nil
}

func (c *Controller) newCanary(rep *events.Reporter) (*beside.Canary, error) {
	core, err := typedcorev1.NewForConfigAndClient(c.clients.bounded, c.guarded(c.clients.boundedClient))
	if err != nil {
		return nil, fmt.Errorf("make a client for the canary: %w", err)
	}
	o := c.options
	return beside.New(beside.Options{
		ConfigMaps: core.ConfigMaps(o.Canary), Namespace: o.Canary, Stands: o.CanaryStands, Once: o.CanaryOnce, Collects: !o.Companion,
		Now: c.clients.clock.Now, Reporter: rep, Registry: o.Registry, Log: o.Log,
	}), nil
}

// either is true of what one of two is true of; the first may be nil.
func either(a func(ref graph.Ref, awaited bool) bool, b func(graph.Ref) bool) func(ref graph.Ref, awaited bool) bool {
	return func(ref graph.Ref, awaited bool) bool { return a != nil && a(ref, awaited) || b(ref) }
}

func (c *Controller) newDrainer(rep *events.Reporter) (*namespaces.Drainer, error) {
	leases, err := typedcoordinationv1.NewForConfigAndClient(c.clients.bounded, c.clients.boundedClient)
	if err != nil {
		return nil, fmt.Errorf("make a leases client: %w", err)
	}
	admission, err := typedadmissionregistrationv1.NewForConfigAndClient(c.clients.config, c.clients.client)
	if err != nil {
		return nil, fmt.Errorf("make a client for webhook configurations: %w", err)
	}
	spaces, err := typedcorev1.NewForConfigAndClient(c.clients.bounded, c.guarded(c.clients.boundedClient))
	if err != nil {
		return nil, fmt.Errorf("make a client for namespaces: %w", err)
	}
	o := c.options
	var left func(types.UID)
	if !o.Companion {
		left = func(uid types.UID) { c.workers.Requeue(uid) }
	}
	return namespaces.New(namespaces.Options{
		Store: c.store, Watcher: c.watcher, Requester: c.requester, Reporter: rep,
		Namespaces: spaces.Namespaces(), Leases: leases, Webhooks: admission, Clock: c.clients.clock,
		Seals: o.Seals, Policies: o.Policies, Home: o.Home, Companion: o.Companion, Left: left, Log: o.Log,
	}), nil
}

// close ends what began with New. A Controller that has led does not lead again.
func (c *Controller) close() {
	c.workers.Close()
	if c.drainer != nil {
		c.drainer.Close()
	}
	if c.enforced != nil {
		c.enforced.Close()
	}
	c.events.Shutdown()
}

// Lead carries out what follows from the graph until ctx ends. Only one replica may, and Follow
// must be running. In replace mode it waits until no other garbage collector works, and ends with
// ErrOtherCollector when one begins.
func (c *Controller) Lead(ctx context.Context) error {
	if c.shadow == nil {
		c.events.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: c.sink})
	}
	defer c.close()
	c.began.Store(true)
	began := time.Now()
	alone := make(chan error, 1)
	go func() { alone <- c.awaitAlone(ctx) }()
	if c.brake != nil {
		c.brake.Begin(ctx)
	}
	listed := c.watcher.AwaitLists(ctx)
	if err := <-alone; err != nil {
		return err
	}
	if !listed || ctx.Err() != nil {
		return nil
	}
	lead := func(ctx context.Context) error {
		c.leads.Store(true)
		defer c.leads.Store(false)
		st := c.store.Stats()
		c.options.Log.Info("leading", "collecting", !c.options.Companion && c.shadow == nil, "objects", st.Objects, "waited", time.Since(began).Round(time.Millisecond).String())
		return c.work(ctx)
	}
	if c.options.Migration != nil {
		return c.options.Migration.Hold(ctx, lead)
	}
	return lead(ctx)
}

// awaitAlone returns when no other garbage collector works, where that matters, or ctx ends.
func (c *Controller) awaitAlone(ctx context.Context) error {
	if c.canary == nil || c.options.Companion || c.options.Migration != nil {
		return nil
	}
	if err := c.canary.Await(ctx); ctx.Err() == nil {
		return err
	}
	return nil
}

// work runs what the leader does until ctx ends, or another garbage collector begins to work.
func (c *Controller) work(ctx context.Context) (err error) {
	ctx, end := context.WithCancel(ctx)
	defer end()
	var wg sync.WaitGroup
	defer wg.Wait()
	if c.brake != nil {
		c.brake.Recall(ctx)
		wg.Go(func() { c.brake.Remember(ctx) })
	}
	if c.drainer != nil {
		wg.Go(func() { c.drainer.Run(ctx, c.options.Namespaces) })
	}
	if c.enforced != nil {
		wg.Go(func() { c.enforced.Run(ctx) })
	}
	if c.shadow != nil {
		wg.Go(func() { c.shadow.Run(ctx) })
	}
	if !c.options.Companion || c.options.brakes() || c.options.Policies != nil {
		// As many again as there are places: requests that hang hold a worker, and are not counted
		// for long.
		wg.Go(func() { c.workers.Run(ctx, 2*c.options.Concurrency) })
	}
	if c.brake != nil {
		requested := func(types.UID) {}
		if c.enforced != nil {
			requested = c.enforced.Requeue
		}
		wg.Go(func() { c.brake.Run(ctx, c.workers.Requeue, requested) })
	}
	switch {
	case c.canary == nil:
	case c.options.Companion:
		wg.Go(func() { c.canary.Measure(ctx) })
	default:
		err = c.canary.Watch(ctx)
		end()
	}
	wg.Wait()
	return err
}
