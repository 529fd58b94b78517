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
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"

	"github.com/weir-dev/weir/archive"
	"github.com/weir-dev/weir/controller/beside"
	"github.com/weir-dev/weir/controller/brake"
	"github.com/weir-dev/weir/controller/collect"
	"github.com/weir-dev/weir/controller/enforce"
	"github.com/weir-dev/weir/controller/events"
	"github.com/weir-dev/weir/controller/follow"
	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/leases"
	"github.com/weir-dev/weir/controller/namespaces"
	"github.com/weir-dev/weir/controller/request"
	"github.com/weir-dev/weir/controller/undo"
	"github.com/weir-dev/weir/internal/tools/shadow"
	"github.com/weir-dev/weir/policies/live"
)

// Defaults of Options.
const (
	DefaultNamespaceSyncs = namespaces.DefaultNamespaceSyncs
	DefaultCanaryStands   = beside.DefaultStands
	DefaultShadowLate     = shadow.DefaultLate
)

// ErrOtherCollector ends Lead in replace mode: another garbage collector works in the cluster.
var ErrOtherCollector = beside.ErrOther

// Options are the options of New. The zero value of each field but Config is a default.
type Options struct {
	Config     *rest.Config
	Ignored    []schema.GroupResource // kinds that are left alone, besides events
	Namespaces int                    // how many namespaces are drained at once; 0: another controller drains them
	// Companion leaves collecting to the built-in collectors, and does only what policies ask for.
	// Namespaces that a DrainPolicy selects are drained; the namespace controller finds them empty.
	Companion bool
	// Shadow sends no request that changes anything. What Weir would collect is compared with what
	// others do. What they have not done after ShadowLate (shadow.DefaultLate if 0) is a difference.
	// Namespaces, Companion, Policies, Webhooks and Canary have no effect.
	Shadow     bool
	ShadowLate time.Duration
	// Home is the namespace that Weir runs in; empty if it is in none. In replace mode it is not
	// drained: no process would be left to finish.
	Home     string
	Policies *live.State            // nil: there are no policies. The caller runs it.
	Webhooks *enforce.WebhookTarget // nil: another process writes the webhook configurations
	Seals    namespaces.Sealer      // seals waves; nil: there is no key, and any wave that is written is believed
	// Canary is the namespace of the object that shows whether another garbage collector works, and of
	// the record of owners that were seen to be deleted; empty: there is neither. In replace mode
	// nothing is collected beside another collector. CanaryStands is how long the canary must stand
	// (beside.DefaultStands if 0). With CanaryOnce Lead ends with ErrOtherCollector at once, instead
	// of waiting until the other does not work.
	Canary       string
	CanaryStands time.Duration
	CanaryOnce   bool
	Lease        *leases.Lease // the leader's, which gets what watches show; nil: there is none
	// Brake limits deletes that nobody was seen to ask for, where Weir is the collector; the zero value
	// limits nothing.
	Brake brake.Limits
	// ArchiveBytes is how many bytes all trees of deleted objects may have.
	ArchiveBytes int64
	Registry     prometheus.Registerer // of the metrics; nil: none
	Log          logr.Logger           // discards by default
}

// Controller collects garbage in one cluster. It follows every kind. While it leads, it deletes
// objects that have no owner left, and honours foreground and orphan deletion.
type Controller struct {
	*Following
	reporter *events.Reporter
	workers  *collect.Workers
	drainer  *namespaces.Drainer // nil: another controller drains namespaces
	enforced *enforce.Enforcer   // nil without policies
	canary   *beside.Canary      // nil: other collectors are not looked for
	brake    *brake.Brake        // nil: nothing is held
	shadow   *shadow.Shadow      // nil: decisions are carried out
	undo     *undo.Recorder      // nil: nothing is recorded
	collects bool
	jobs     []func(context.Context) // the work of a leader
	began    atomic.Bool             // Lead was called
	leads    atomic.Bool             // the work of the leader has begun
	events   record.EventBroadcaster
}

// New returns a Controller. It sends nothing to the API server before Follow.
func New(o Options) (*Controller, error) {
	following, err := NewFollowing(o)
	if err != nil {
		return nil, err
	}
	c := &Controller{Following: following, events: record.NewBroadcaster()}
	recorder := c.events.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "weir"})
	c.reporter = events.New(recorder, c.requester.KindOf)
	if o.Shadow {
		c.inShadow()
	} else if err := c.act(); err != nil {
		return nil, err
	}
	if err := c.options.Registry.Register(newLoadMetrics(c.leads.Load, c.workers.Oldest, c.limiter)); err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	return c, nil
}

// inShadow sets up shadow mode: decisions are made, and nothing is sent.
func (c *Controller) inShadow() {
	o := c.options
	c.shadow = shadow.New(shadow.Options{
		Store: c.store, Ready: c.watcher.Ready, Undiscovered: c.watcher.Undiscovered, Late: o.ShadowLate,
		Registry: o.Registry, Log: o.Log,
	})
	c.watcher.Listen(follow.Listener{Showing: c.shadow.Showing, Going: c.shadow.Going, Rewound: c.shadow.Rewound})
	c.work(collect.Options{Shadow: c.shadow.Decided}, true)
	c.jobs = append(c.jobs, c.shadow.Run)
}

// act sets up replace mode, in which Weir collects in place of the built-in collector, or companion
// mode, in which it does what policies ask for beside that one.
func (c *Controller) act() error {
	o, limits := c.options, brake.Limits{} // of inferred deletes, which are Weir's in replace mode only
	if c.collects = !o.Companion; c.collects {
		limits = o.Brake
	}
	if o.Canary != "" {
		c.look()
	}
	c.watcher.Listen(follow.Listener{Rewound: c.reporter.Rewound})
	if o.Lease != nil {
		c.watcher.Listen(follow.Listener{Showing: func(shown *graph.Object) func() {
			o.Lease.Showing(shown)
			return nil
		}})
	}
	workers := collect.Options{Beside: !c.collects, Shown: c.watcher.Shown, Others: c.others}
	if o.Namespaces > 0 {
		c.drain()
	}
	client, err := dynamic.NewForConfigAndClient(c.clients.bounded, c.clients.boundedClient)
	if err != nil {
		return fmt.Errorf("make a client for Weir's own kinds: %w", err)
	}
	if !limits.Off() || o.Policies != nil {
		c.limit(limits, client)
	}
	if !limits.Off() {
		workers.Brake = c.brake
	}
	if o.Policies != nil {
		workers.Guards = func(kind schema.GroupResource) bool { return o.Policies.Set().Guards(kind) }
	}
	c.work(workers, c.collects || c.brake != nil)
	if o.Policies == nil {
		return nil
	}
	if o.Canary != "" {
		if err := c.record(); err != nil {
			return err
		}
	}
	c.enforced, err = enforce.New(enforce.Options{
		Config: c.clients.bounded, Kube: c.clients.open, Dynamic: client, Store: c.store, Watcher: c.watcher,
		Requester: c.requester, Reporter: c.reporter, Policies: o.Policies,
		Webhooks: o.Webhooks, Collects: c.collects, Drains: c.drainer != nil, FilesIn: o.Canary, Brake: c.brake,
		Archive: c.undo, Registry: o.Registry, Log: o.Log,
	})
	if err != nil {
		return err
	}
	c.watcher.Listen(follow.Listener{Terminating: c.enforced.Terminating})
	c.jobs = append(c.jobs, c.enforced.Run)
	return nil
}

// others reports whether an object is not the collector's to delete.
func (c *Controller) others(ref graph.Ref, awaited bool) bool {
	return c.drainer != nil && c.drainer.Deletes(ref, awaited) || c.canary != nil && c.canary.Is(ref)
}

// work makes the workers. If runs, they run while this process leads.
func (c *Controller) work(w collect.Options, runs bool) {
	w.Store, w.Requester, w.Reporter = c.store, c.requester, c.reporter
	w.Registry, w.Log = c.options.Registry, c.options.Log
	c.workers = collect.New(w)
	if runs {
		// Twice as many as there are places: requests that hang hold a worker, and soon do not count
		// against the places.
		c.jobs = append(c.jobs, func(ctx context.Context) { c.workers.Run(ctx, 2*request.DefaultConcurrency) })
	}
}

// limit makes the brake, if anything may be held: by limits of inferred deletes, or by a policy.
func (c *Controller) limit(limits brake.Limits, client dynamic.Interface) {
	o := brake.Options{Limits: limits, Store: c.store, Client: client, Reporter: c.reporter,
		Registry: c.options.Registry, Log: c.options.Log}
	if c.options.Canary != "" {
		o.Record = c.clients.guarded.CoreV1().ConfigMaps(c.options.Canary)
	}
	c.brake = brake.New(o)
	c.watcher.Listen(follow.Listener{Rewound: c.brake.Rewound})
	c.jobs = append(c.jobs, c.brake.Remember, func(ctx context.Context) {
		requested := func(types.UID) {}
		if c.enforced != nil {
			requested = c.enforced.Requeue
		}
		c.brake.Run(ctx, c.workers.Requeue, requested)
	})
}

// record makes the recorder of deleted objects, if a policy may ask for it. Its key is in the
// namespace of Weir.
func (c *Controller) record() error {
	client, err := dynamic.NewForConfigAndClient(c.clients.bounded, c.guarded(c.clients.boundedClient))
	if err != nil {
		return fmt.Errorf("make a client for the archive: %w", err)
	}
	c.undo = undo.New(undo.Options{Store: c.store, Requester: c.requester, Reporter: c.reporter,
		Archive: archive.NewStore(client, c.options.Canary), Most: c.options.ArchiveBytes,
		Volumes:  c.clients.guarded.CoreV1().PersistentVolumes(),
		Registry: c.options.Registry, Log: c.options.Log})
	c.jobs = append(c.jobs, c.undo.Run)
	if c.drainer != nil {
		c.drainer.Archive = c.undo
	}
	return nil
}

// look makes the canary, which shows whether another collector works, or in companion mode how soon.
func (c *Controller) look() {
	o := c.options
	c.canary = beside.New(beside.Options{
		ConfigMaps: c.clients.guarded.CoreV1().ConfigMaps(o.Canary), Namespace: o.Canary, Stands: o.CanaryStands,
		Once: o.CanaryOnce, Collects: c.collects, Now: c.clients.clock.Now, Reporter: c.reporter,
		Registry: o.Registry, Log: o.Log,
	})
	if !c.collects {
		c.jobs = append(c.jobs, c.canary.Measure)
	}
}

// excludes reports whether this process may not work beside another collector.
func (c *Controller) excludes() bool { return c.collects && c.canary != nil }

// drain makes the drainer.
func (c *Controller) drain() {
	o := namespaces.Options{
		Store: c.store, Watcher: c.watcher, Requester: c.requester, Reporter: c.reporter,
		Namespaces: c.clients.guarded.CoreV1().Namespaces(), Leases: c.clients.open.CoordinationV1(),
		Clock: c.clients.clock, Seals: c.options.Seals,
		Policies: c.options.Policies, Home: c.options.Home, Companion: !c.collects, Log: c.options.Log,
	}
	if c.collects {
		o.Left = func(uid types.UID) { c.workers.Requeue(uid) }
	}
	c.drainer = namespaces.New(o)
	c.watcher.Listen(follow.Listener{Namespace: c.drainer.Changed})
	c.jobs = append(c.jobs, func(ctx context.Context) { c.drainer.Run(ctx, c.options.Namespaces) })
}

// ShadowHandler serves the comparison of shadow mode to programs of this machine. It does no
// authentication.
func (c *Controller) ShadowHandler() http.Handler { return shadow.Local(c.shadow.Handler()) }

// close ends what New began. A Controller that has led does not lead again.
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

// Lead carries out the decisions of the graph until ctx ends. Only one replica may lead, and Follow
// must be running. In replace mode Lead waits until no other garbage collector works, and ends with
// ErrOtherCollector when one begins.
func (c *Controller) Lead(ctx context.Context) error {
	if c.shadow == nil {
		c.events.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: c.clients.open.CoreV1().Events("")})
	}
	defer c.close()
	c.began.Store(true)
	began := time.Now()
	alone := make(chan error, 1)
	go func() {
		var err error
		if c.excludes() {
			err = c.canary.Await(ctx)
		}
		alone <- err
	}()
	if c.brake != nil {
		c.brake.Begin()
	}
	listed := c.watcher.AwaitLists(ctx)
	if err := <-alone; !listed || ctx.Err() != nil {
		return nil
	} else if err != nil {
		return err
	}
	c.leads.Store(true)
	defer c.leads.Store(false)
	c.options.Log.Info("leading", "collecting", c.collects, "objects", c.store.Stats().Objects,
		"waited", time.Since(began).Round(time.Millisecond).String())
	return c.do(ctx)
}

// do runs the work of the leader until ctx ends, or another garbage collector begins to work.
func (c *Controller) do(ctx context.Context) (err error) {
	ctx, end := context.WithCancel(ctx)
	defer end()
	if c.brake != nil {
		c.brake.Recall(ctx)
	}
	var wg sync.WaitGroup
	for _, job := range c.jobs {
		wg.Go(func() { job(ctx) })
	}
	if c.excludes() {
		err = c.canary.Watch(ctx)
		end()
	}
	wg.Wait()
	return err
}
