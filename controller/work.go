package controller

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"

	"github.com/weir-dev/weir/controller/graph"
)

// Backoff of one object whose request did not succeed. The longest pause is a quarter of an hour in the
// reference; nobody waits that long without thinking that nothing happens.
const (
	firstBackoff = 20 * time.Millisecond
	mostBackoff  = 2 * time.Minute
)

// workers take dirty objects from the queue and do for each the one thing that the graph says.
type workers struct {
	store     *store
	requester *requester
	reporter  *reporter
	metrics   *metrics
	log       logr.Logger
	queue     workqueue.TypedRateLimitingInterface[types.UID]
	ages      ages
	coOwners  *coOwners
	cascades  *cascades
	// later tells of objects whose wave has not come in a namespace that drains. Whoever drains deletes
	// them then.
	later func(graph.Ref) bool
}

func newWorkers(s *store, r *requester, rep *reporter, m *metrics, log logr.Logger) *workers {
	w := &workers{store: s, requester: r.forWorkers(), reporter: rep, metrics: m, log: log, later: func(graph.Ref) bool { return false }}
	w.queue = workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.NewTypedItemExponentialFailureRateLimiter[types.UID](firstBackoff, mostBackoff),
		workqueue.TypedRateLimitingQueueConfig[types.UID]{Name: "graph"})
	w.ages.since = map[types.UID]time.Time{}
	w.coOwners = newCoOwners(w.lookCoOwner)
	w.cascades = newCascades(rep.cascade, log)
	r.limiter.resume = w.queue.Add
	return w
}

// run works with n goroutines until ctx ends, and joins them.
func (w *workers) run(ctx context.Context, n int) {
	w.store.lead(func(dirty []types.UID) {
		w.ages.begin(dirty)
		for _, uid := range dirty {
			w.queue.Add(uid)
		}
	})
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			for {
				uid, closed := w.queue.Get()
				if closed {
					return
				}
				w.requester.limiter.arrived(uid)
				w.work(ctx, uid)
				w.requester.limiter.left()
				w.queue.Done(uid)
			}
		})
	}
	wg.Go(func() { w.recheck(ctx) })
	wg.Go(func() { w.coOwners.run(ctx) })
	wg.Go(func() { w.cascades.run(ctx) })
	<-ctx.Done()
	w.queue.ShutDown()
	wg.Wait()
}

// recheck is the clock of the graph: lookups that failed are repeated by it.
func (w *workers) recheck(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for round := uint64(1); ; round++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			w.store.apply(graph.Recheck{Round: round})
		}
	}
}

func (w *workers) work(ctx context.Context, uid types.UID) {
	ctx = w.requester.history.mark(ctx)
	a := w.store.decide(uid)
	w.reporter.decided(a)
	if a.Verb == graph.Delete && !a.Awaited && w.later(a.Object) {
		w.log.V(1).Info("left for its wave", "object", a.Object.String(), "uid", uid, "why", a.Why)
		w.done(uid)
		return
	}
	switch a.Verb {
	case graph.Keep, graph.Wait:
		if log := w.log.V(1); a.Object.UID != "" && log.Enabled() {
			log.Info("nothing to do", "object", a.Object.String(), "uid", uid, "why", a.Why)
		}
		w.done(uid)
		if a.Unseen != "" {
			if again := w.reporter.held(a); again > 0 {
				w.queue.AddAfter(uid, again)
			}
		}
	case graph.Look:
		if a.LowPriority {
			w.coOwners.queue.Add(uid)
			w.done(uid)
			return
		}
		w.look(ctx, a)
		w.queue.Forget(uid)
	default:
		err := w.request(ctx, a)
		if isBusy(err) {
			w.log.V(1).Info("its kind is in trouble, will be tried in its turn", "object", a.Object.String(), "uid", uid, "why", a.Why, "err", err.Error())
			w.requester.limiter.putOff(a.Object.Kind, uid)
			return
		}
		w.settle(ctx, a, err)
	}
}

// look answers the claim of an action by a live read.
func (w *workers) look(ctx context.Context, a graph.Action) {
	answer, reason := w.requester.look(ctx, a.Claim)
	w.metrics.looked(a, answer)
	w.log.V(1).Info("looked", "object", a.Object.String(), "owner", a.Claim.Name, "answer", answer.String(), "reason", reason)
	w.store.apply(graph.Looked{Claim: a.Claim, Answer: answer, Reason: reason})
}

func (w *workers) send(ctx context.Context, a graph.Action, version string) error {
	if a.Verb == graph.Delete {
		since, known := w.ages.get(a.Object.UID)
		lag := time.Since(since)
		ref := a.Object
		ref.ResourceVersion = version
		err := w.requester.delete(ctx, ref, a.Propagation)
		if known && !isBusy(err) {
			w.metrics.lag.Observe(lag.Seconds())
		}
		return err
	}
	return w.requester.patch(ctx, a, version)
}

// settle takes in how a request ended.
func (w *workers) settle(ctx context.Context, a graph.Action, err error) {
	uid := a.Object.UID
	w.metrics.acted(a, outcomeOf(err))
	log := w.log.WithValues("object", a.Object.String(), "uid", uid, "why", a.Why)
	switch outcome := outcomeOf(err); outcome {
	case ok:
		w.store.accepted(a)
		if a.Verb == graph.Delete {
			log = log.WithValues("root", w.cascades.collected(a).String())
		}
		log.Info(doing[a.Verb], "propagation", a.Propagation)
		w.reporter.succeeded(a)
		w.done(uid)
	case stale, gone:
		log.V(1).Info("view was old, deciding again", "action", a.Verb.String(), "outcome", outcome)
		// The watch is given a moment to bring what has happened.
		if history := w.store.history(); w.queue.NumRequeues(uid) > 0 && w.requester.isGone(ctx, a.Object) {
			log.Info("object is gone, and its watch did not say so", "action", a.Verb.String(), "outcome", outcome)
			w.store.apply(graph.NotFound{Kind: a.Object.Kind, UID: uid, History: history})
			w.done(uid)
			return
		}
		w.queue.AddRateLimited(uid)
	case throttled:
		log.V(1).Info("told to come back later", "action", a.Verb.String(), "err", err.Error())
		w.again(uid, err)
	case cancelled:
		w.queue.Forget(uid)
	default:
		log.Info("request failed, will try again", "action", a.Verb.String(), "outcome", outcome, "err", err.Error())
		w.reporter.refused(a, outcome, err, w.queue.NumRequeues(uid))
		w.again(uid, err)
	}
}

// again tries an object later: after its own backoff, or when the server said, whichever is later.
func (w *workers) again(uid types.UID, err error) {
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok && seconds > 0 {
		w.queue.AddAfter(uid, min(time.Duration(seconds)*time.Second, mostPause))
		return
	}
	w.queue.AddRateLimited(uid)
}

func (w *workers) done(uid types.UID) {
	w.queue.Forget(uid)
	w.ages.end(uid)
}

// doing are the log messages of actions that were carried out.
var doing = [...]string{
	graph.Delete: "deleted", graph.Release: "released from owners",
	graph.Unblock: "unblocked owners", graph.Unfinalize: "removed finalizer",
}

// ages remembers since when objects have had something to do.
type ages struct {
	mu    sync.Mutex
	since map[types.UID]time.Time
	peak  int
}

func (a *ages) begin(uids []types.UID) {
	now := time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, uid := range uids {
		if _, ok := a.since[uid]; !ok {
			a.since[uid] = now
		}
	}
}

func (a *ages) end(uid types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.since, uid)
	if a.peak = max(a.peak, len(a.since)+1); a.peak > 10_000 && len(a.since) == 0 {
		a.since, a.peak = map[types.UID]time.Time{}, 0 // maps never shrink
	}
}

func (a *ages) get(uid types.UID) (time.Time, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	t, ok := a.since[uid]
	return t, ok
}

// oldest is how long the object that has waited longest has had something to do.
func (a *ages) oldest() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	var oldest time.Duration
	for _, t := range a.since {
		oldest = max(oldest, time.Since(t))
	}
	return oldest
}

// refusedByWebhook tells an admission webhook's refusal from the API server's own answer: the code of a
// refusal is the webhook's choice and says nothing about the object (RB 6.14, 3.18).
func refusedByWebhook(err error) bool {
	return err != nil && strings.Contains(err.Error(), "admission webhook ") && strings.Contains(err.Error(), " denied the request")
}
