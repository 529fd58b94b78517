package controller

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/policies"
	"github.com/weir-dev/weir/policies/live"
	"github.com/weir-dev/weir/policies/stamps"
	"github.com/weir-dev/weir/policies/v1alpha1"
)

// shapeWorkers is how many deletions are shaped at the same time. Each is two or three requests.
const shapeWorkers = 16

// shaper has the deletions of stamped objects carried out as policies say.
//
// Who carries them out is the garbage collector, the built-in one or ours: the API server lets a deletion that is under
// way take another course when the object is deleted once more with another propagation policy (RB 6.34). Weir's
// finalizer holds the object until that has been said, and until dependents that are to be kept are released. A crash at
// any point leaves an object that is held, which the next leader finds.
type shaper struct {
	store     *store
	requester *requester
	lister    *stamps.Lister
	stamper   *stamps.Stamper
	policies  *live.State
	reporter  *reporter
	metrics   *enforcementMetrics
	log       logr.Logger
	queue     workqueue.TypedRateLimitingInterface[types.UID]

	mu      sync.Mutex
	leading bool
	// held are the objects under way: true once their deletion has been given its course. Losing it costs a request.
	held map[types.UID]bool
}

func newShaper(s *store, r *requester, lister *stamps.Lister, stamper *stamps.Stamper, p *live.State, rep *reporter, m *enforcementMetrics, log logr.Logger) *shaper {
	return &shaper{
		store: s, requester: r, lister: lister, stamper: stamper, policies: p, reporter: rep, metrics: m, log: log,
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.NewTypedItemExponentialFailureRateLimiter[types.UID](50*time.Millisecond, 30*time.Second),
			workqueue.TypedRateLimitingQueueConfig[types.UID]{Name: "shape"}),
		held: map[types.UID]bool{},
	}
}

// terminating is told of every object that is seen to terminate.
func (s *shaper) terminating(m *metav1.PartialObjectMetadata) {
	if !slices.Contains(m.Finalizers, v1alpha1.Finalizer) {
		return
	}
	s.mu.Lock()
	leading := s.leading
	s.mu.Unlock()
	if leading {
		s.queue.Forget(m.UID)
		s.queue.Add(m.UID)
	}
}

// run shapes until ctx ends, beginning with what is terminating already.
func (s *shaper) run(ctx context.Context) {
	s.mu.Lock()
	s.leading = true
	s.mu.Unlock()
	for _, v := range s.store.finalized(v1alpha1.Finalizer) {
		if v.Deleting {
			s.queue.Add(v.UID)
		}
	}
	var wg sync.WaitGroup
	for range shapeWorkers {
		wg.Go(func() {
			for {
				uid, closed := s.queue.Get()
				if closed {
					return
				}
				s.work(ctx, uid)
				s.queue.Done(uid)
			}
		})
	}
	<-ctx.Done()
	s.queue.ShutDown()
	wg.Wait()
}

func (s *shaper) work(ctx context.Context, uid types.UID) {
	again, err := s.shape(ctx, uid)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		s.log.Info("shaping a deletion failed, will try again", "uid", uid, "err", err.Error())
		s.metrics.shaped.WithLabelValues("failed").Inc()
		s.queue.AddRateLimited(uid)
	case again:
		s.queue.AddRateLimited(uid)
	default:
		s.queue.Forget(uid)
	}
	s.mu.Lock()
	s.metrics.shaping.Set(float64(len(s.held)))
	s.mu.Unlock()
}

// shape takes the deletion of one object one step on. again: it waits for something that nobody will tell of.
func (s *shaper) shape(ctx context.Context, uid types.UID) (again bool, err error) {
	v, known := s.store.find(uid)
	if !known || !v.Deleting || !slices.Contains(v.Finalizers, v1alpha1.Finalizer) {
		s.forget(uid)
		return false, nil
	}
	gvk := s.requester.kindOf(v.Kind)
	gvr := v.Kind.WithVersion(gvk.Version)
	_, whole := s.policies.Set().Stamps(v.Kind)
	object, m, err := s.lister.Get(ctx, gvr, v.Namespace, v.Name, whole)
	switch {
	case apierrors.IsNotFound(err) || err == nil && (m.UID != uid || m.DeletionTimestamp == nil):
		s.forget(uid)
		return false, nil
	case err != nil:
		return false, fmt.Errorf("read %s: %w", v.Ref, err)
	case !slices.Contains(m.Finalizers, v1alpha1.Finalizer):
		s.forget(uid)
		return false, nil
	}
	shaping := s.policies.Set().Shape(policies.Stored(gvk, gvr, object, s.policies.Namespace(v.Namespace)))
	dependents, unlisted := s.store.dependents(uid)
	step := nextShape(shapeState{shaping: shaping, finalizers: m.Finalizers, dependents: dependents, unlisted: unlisted, given: s.given(uid)})
	s.log.V(1).Info("shaping", "object", v.Ref.String(), "uid", uid, "step", step.why)
	return s.carryOut(ctx, v, m, step)
}

func (s *shaper) carryOut(ctx context.Context, v graph.View, m *metav1.ObjectMeta, step shapeStep) (again bool, err error) {
	switch {
	case step.wait:
		s.tell(v, step.why)
		return true, nil
	case len(step.release) > 0:
		return true, s.release(ctx, v, step)
	case step.course != "":
		ref := v.Ref
		ref.ResourceVersion = m.ResourceVersion
		err := s.requester.delete(ctx, ref, step.course)
		if apierrors.IsConflict(err) && !refusedByWebhook(err) || apierrors.IsNotFound(err) {
			return true, nil
		}
		if err != nil {
			return false, fmt.Errorf("have %s deleted with %s: %w", v.Ref, step.course, err)
		}
		s.mu.Lock()
		s.held[v.UID] = true
		s.mu.Unlock()
		s.log.Info("gave a deletion its course", "object", v.Ref.String(), "uid", v.UID, "propagation", step.course, "why", step.why)
		return true, nil
	}
	result, err := s.stamper.Take(ctx, v.Kind.WithVersion(s.requester.kindOf(v.Kind).Version), m)
	if err != nil {
		return false, err
	}
	s.forget(v.UID)
	s.metrics.shaped.WithLabelValues("done").Inc()
	s.log.Info("let go of a deletion", "object", v.Ref.String(), "uid", v.UID, "why", step.why, "result", result)
	return false, nil
}

// release takes the references to an owner off dependents that are to be kept.
func (s *shaper) release(ctx context.Context, owner graph.View, step shapeStep) error {
	for _, d := range step.release {
		a := graph.Action{Verb: graph.Release, Object: d.Ref, Owners: []metav1.OwnerReference{}, Why: step.why}
		for _, o := range d.Owners {
			if o.UID != owner.UID {
				a.Owners = append(a.Owners, o.OwnerReference)
			}
		}
		_, err := s.requester.patch(ctx, a, d.ResourceVersion)
		switch outcomeOf(err) {
		case ok:
			s.log.Info("released from an owner", "object", d.Ref.String(), "owner", owner.Ref.String(), "why", step.why)
		case stale, gone, cancelled: // the watch will bring what it has become
		case refused, failed, throttled:
			return fmt.Errorf("release %s from %s: %w", d.Ref, owner.Ref, err)
		}
	}
	return nil
}

func (s *shaper) given(uid types.UID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	given := s.held[uid]
	s.held[uid] = given
	return given
}

func (s *shaper) forget(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.held, uid)
}

// tell says on the object why its deletion does not go on.
func (s *shaper) tell(v graph.View, why string) {
	if s.reporter.first(v.UID, ReasonHeld, why) {
		s.reporter.events.Event(s.reporter.object(v.Ref), corev1.EventTypeWarning, ReasonHeld, why)
	}
}
