package collect

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/singleflight"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/weir-dev/weir/controller/await"
	"github.com/weir-dev/weir/controller/events"
	"github.com/weir-dev/weir/controller/follow"
	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/request"
)

// The backoff of an object whose request did not succeed. The reference pauses for up to a quarter
// of an hour, which a user takes for nothing happening.
const (
	firstBackoff = 20 * time.Millisecond
	mostBackoff  = 2 * time.Minute
)

// untilShown is the pause before the watches are asked again whether they have shown everything.
const untilShown = 50 * time.Millisecond

// Options are what Workers need.
type Options struct {
	Store     *follow.Store
	Requester *request.Client
	Reporter  *events.Reporter
	// Others reports whether an object is for others to delete, or is to stay: one in a namespace
	// that drains, unless an owner awaits its end before its wave has come. It may be nil.
	Others func(ref graph.Ref, awaited bool) bool
	// Brake limits the deletes that no client has asked for. It may be nil.
	Brake Brake
	// Beside is set where another collector works. Then nothing is deleted. Lookups are sent.
	Beside bool
	// Guards reports whether a policy may protect objects of a kind from collectors. It may be nil.
	// Beside another collector such an object is released from its owners once a dry run of its
	// delete is refused, so that the other collector does not try forever.
	Guards func(schema.GroupResource) bool
	// Shown reports whether the watches have shown what was written before an owner was deleted with
	// orphan. It may be nil, if they always have.
	Shown func(graph.Ref) bool
	// Shadow gets what would be done, and the API server does not. It may be nil. Lookups are sent.
	Shadow   func(uid types.UID, a graph.Action)
	Log      logr.Logger
	Registry prometheus.Registerer
}

// Workers take dirty objects from the queue and do for each the one thing that the graph says.
type Workers struct {
	Options
	metrics  *metrics
	queue    workqueue.TypedRateLimitingInterface[types.UID]
	coOwners workqueue.TypedInterface[types.UID] // see lookCoOwners
	ages     ages
	reads    singleflight.Group    // of owners that await objects; see stillAwaited
	awaited  *cache.LRUExpireCache // recent answers about them
	cascades *cascades
}

// Brake limits what is deleted by inference.
type Brake interface {
	// Allows reports whether an object may be deleted. If not, it is decided about again after a
	// time, or if that is 0, when the Brake requeues it.
	Allows(a graph.Action) (yes bool, again time.Duration)
	// Deleted notes what was deleted.
	Deleted(a graph.Action)
}

// New returns Workers that do not run yet.
func New(o Options) *Workers {
	w := &Workers{Options: o, metrics: newMetrics(o.Registry)}
	w.Requester = o.Requester.ForWorkers()
	if w.Guards == nil {
		w.Guards = func(schema.GroupResource) bool { return false }
	}
	w.ages.of = map[types.UID]age{}
	w.queue = newQueue(newLanes(w.ages.ending))
	w.awaited = cache.NewLRUExpireCache(mostAwaited)
	w.coOwners = workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[types.UID]{Name: "co-owners"})
	w.cascades = newCascades(o.Reporter.Cascade, o.Log)
	o.Requester.Limiter.CallBack = w.queue.Add
	return w
}

// queueName is the name of the queue in metrics.
const queueName = "graph"

// newQueue returns a queue with an order of ours that also hands out objects later.
func newQueue(order workqueue.Queue[types.UID]) workqueue.TypedRateLimitingInterface[types.UID] {
	inner := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[types.UID]{Name: queueName, Queue: order})
	delaying := workqueue.NewTypedDelayingQueueWithConfig(
		workqueue.TypedDelayingQueueConfig[types.UID]{Name: queueName, Queue: inner})
	return workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.NewTypedItemExponentialFailureRateLimiter[types.UID](firstBackoff, mostBackoff),
		workqueue.TypedRateLimitingQueueConfig[types.UID]{Name: queueName, DelayingQueue: delaying})
}

// Oldest returns for how long the object that has waited longest has had something to do.
func (w *Workers) Oldest() time.Duration { return w.ages.oldest() }

// Close ends the queues. Run does that, too.
func (w *Workers) Close() {
	w.queue.ShutDown()
	w.coOwners.ShutDown()
}

// Run works with n goroutines until ctx ends, and joins them.
func (w *Workers) Run(ctx context.Context, n int) {
	w.Store.Lead(func(ending, rest []types.UID) {
		w.ages.begin(ending, rest)
		for _, uid := range ending {
			w.queue.Add(uid)
		}
		for _, uid := range rest {
			w.queue.Add(uid)
		}
	})
	var wg sync.WaitGroup
	await.Work(&wg, n, w.queue, func(uid types.UID) { w.work(ctx, uid) })
	w.lookCoOwners(ctx, &wg)
	wg.Go(func() { w.recheck(ctx) })
	wg.Go(func() { w.cascades.run(ctx) })
	<-ctx.Done()
	w.Close()
	wg.Wait()
}

// recheck is the graph's clock, by which failed lookups are repeated.
func (w *Workers) recheck(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for round := uint64(1); ; round++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			w.Store.Apply(graph.Recheck{Round: round})
		}
	}
}

func (w *Workers) work(ctx context.Context, uid types.UID) {
	ctx = w.Requester.History.Mark(ctx)
	a := w.Store.Decide(uid)
	if w.Shadow != nil {
		w.Shadow(uid, a)
		if a.Request() && a.Verb != graph.Lookup {
			w.done(uid)
			return
		}
	}
	if w.Beside && !w.concerns(a) {
		w.done(uid)
		return
	}
	if !w.Beside {
		w.Reporter.Decided(a)
	}
	if a.Verb == graph.Delete && w.Others != nil && w.Others(a.Object, len(a.AwaitedBy) > 0) {
		w.Log.V(1).Info("left to others", "object", a.Object.String(), "uid", uid, "why", a.Why)
		w.done(uid)
		return
	}
	if w.held(a) {
		w.done(uid)
		return
	}
	if w.unshown(a) {
		w.queue.AddAfter(uid, untilShown)
		return
	}
	if w.Beside && w.leaves(ctx, a) {
		return
	}
	switch a.Verb {
	case graph.Keep, graph.Wait:
		if log := w.Log.V(1); a.Object.UID != "" && log.Enabled() {
			log.Info("nothing to do", "object", a.Object.String(), "uid", uid, "why", a.Why)
		}
		w.done(uid)
		if a.Unseen != "" {
			if said, again := w.Reporter.Held(a); !said {
				w.queue.AddAfter(uid, again)
			}
		}
	case graph.Lookup:
		w.lookInTurn(ctx, a)
	default:
		err := w.request(ctx, a)
		if request.IsBusy(err) {
			w.Log.V(1).Info("put off: requests about its kind fail, hang or are throttled",
				"object", a.Object.String(), "uid", uid, "why", a.Why, "err", err.Error())
			w.Requester.Limiter.PutOff(a.Object.Kind, uid)
			return
		}
		w.settle(ctx, a, err)
	}
}

// unshown reports whether an owner that orphans is about to go, and a dependent may have been
// written that no watch has shown. It also asks while the owner still waits for dependents that are
// seen, so that the answer is there in time.
func (w *Workers) unshown(a graph.Action) bool {
	goes := a.Verb == graph.Unfinalize && a.Finalizer != metav1.FinalizerDeleteDependents
	if !goes && a.Verb != graph.Wait {
		return false
	}
	v, known := w.Store.Find(a.Object.UID)
	return known && v.Orphaning && w.Shown != nil && !w.Shown(a.Object) && goes
}

// concerns reports whether an action is Weir's beside another collector: to look owners up, and to
// release what a policy protects.
func (w *Workers) concerns(a graph.Action) bool {
	guarded := w.Guards(a.Object.Kind)
	switch a.Verb {
	case graph.Lookup:
		return !a.LowPriority && guarded
	case graph.Delete:
		return guarded
	case graph.Release:
		return guarded || a.Kept != ""
	default:
		return false
	}
}

// held reports whether the brake holds an object.
func (w *Workers) held(a graph.Action) bool {
	if a.Verb != graph.Delete || a.Inferred.Conclusion == graph.Asked || w.Brake == nil {
		return false
	}
	yes, again := w.Brake.Allows(a)
	if yes {
		return false
	}
	if again > 0 {
		w.queue.AddAfter(a.Object.UID, again)
		return true
	}
	w.Log.V(1).Info("held by the brake", "object", a.Object.String(), "uid", a.Object.UID,
		"why", a.Why, "inferred", a.Inferred.String())
	return true
}

// Requeue queues an object.
func (w *Workers) Requeue(uid types.UID) { w.queue.Add(uid) }

// lookInTurn looks up the claim of an action at once, or later if it is of low priority.
func (w *Workers) lookInTurn(ctx context.Context, a graph.Action) {
	uid := a.Object.UID
	if a.LowPriority {
		w.coOwners.Add(uid)
		w.done(uid)
		return
	}
	w.look(ctx, a)
	w.queue.Forget(uid)
	if _, there := w.Store.Find(uid); !there {
		w.done(uid) // it went meanwhile, and the answer does not queue it
	}
}

// look answers the claim of an action by a live read.
func (w *Workers) look(ctx context.Context, a graph.Action) {
	answer, reason := w.Requester.Lookup(ctx, a.Claim)
	w.metrics.looked(a, answer)
	w.Log.V(1).Info("looked", "object", a.Object.String(), "owner", a.Claim.Name,
		"answer", answer.String(), "reason", reason)
	w.Store.Apply(graph.LookupAnswered{Claim: a.Claim, Answer: answer, Reason: reason})
}

func (w *Workers) send(ctx context.Context, a graph.Action, version string) error {
	if a.Verb == graph.Delete {
		since, known := w.ages.get(a.Object.UID)
		lag := time.Since(since)
		ref := a.Object
		ref.ResourceVersion = version
		err := w.Requester.Delete(ctx, ref, a.Propagation)
		if known && !request.IsBusy(err) {
			w.metrics.lag.Observe(lag.Seconds())
		}
		return err
	}
	return w.Requester.Patch(ctx, a, version)
}

// settle handles the outcome of a request.
func (w *Workers) settle(ctx context.Context, a graph.Action, err error) {
	uid := a.Object.UID
	log := w.Log.WithValues("object", a.Object.String(), "uid", uid, "why", a.Why)
	outcome := request.OutcomeAbout(a.Object, err)
	w.metrics.acted(a, outcome)
	switch outcome {
	case request.OK:
		w.Store.Accepted(a)
		if a.Verb == graph.Delete {
			log = log.WithValues("root", w.cascades.collected(a).String())
			if w.Brake != nil {
				w.Brake.Deleted(a)
			}
		}
		log.Info(doing[a.Verb], "propagation", a.Propagation)
		w.Reporter.Succeeded(a)
		if a.Kept != "" {
			w.metrics.kept.Inc()
			w.Reporter.Kept(a)
		}
		w.done(uid)
	case request.Stale, request.Gone:
		log.V(1).Info("view was old, deciding again", "action", a.Verb.String(), "outcome", outcome)
		// The watch is given a moment to bring what has happened.
		if history := w.Store.History(); w.queue.NumRequeues(uid) > 0 && w.Requester.IsGone(ctx, a.Object) {
			log.Info("object is gone, and its watch did not say so", "action", a.Verb.String(), "outcome", outcome)
			w.Store.Apply(graph.NotFound{Kind: a.Object.Kind, UID: uid, History: history})
			w.done(uid)
			return
		}
		w.queue.AddRateLimited(uid)
	case request.Throttled:
		log.V(1).Info("throttled, will try again later", "action", a.Verb.String(), "err", err.Error())
		w.retry(uid, err)
	case request.Cancelled:
		w.queue.Forget(uid)
	case request.Refused:
		if why, protected := request.Protected(err); protected {
			w.Store.Apply(graph.Protected{Object: a.Object, Why: why})
			w.queue.AddRateLimited(uid)
			return
		}
		fallthrough
	default:
		log.Info("request failed, will try again", "action", a.Verb.String(), "outcome", outcome, "err", err.Error())
		w.Reporter.Refused(a, outcome, err, w.queue.NumRequeues(uid))
		w.retry(uid, err)
	}
}

// retry queues an object again: after the time that the server gave, or else its own backoff.
func (w *Workers) retry(uid types.UID, err error) {
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok && seconds > 0 {
		w.queue.AddAfter(uid, min(time.Duration(seconds)*time.Second, request.MostPause))
		return
	}
	w.queue.AddRateLimited(uid)
}

func (w *Workers) done(uid types.UID) {
	w.queue.Forget(uid)
	w.ages.end(uid)
}

// doing are the log messages of actions that were carried out.
var doing = [...]string{
	graph.Delete: "deleted", graph.Release: "released from owners",
	graph.Unblock: "unblocked owners", graph.Unfinalize: "removed finalizer",
}
