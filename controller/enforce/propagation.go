package enforce

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"

	"github.com/weir-dev/weir/controller/await"
	"github.com/weir-dev/weir/controller/events"
	"github.com/weir-dev/weir/controller/follow"
	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/request"
	"github.com/weir-dev/weir/controller/undo"
	"github.com/weir-dev/weir/policies"
	"github.com/weir-dev/weir/policies/live"
	"github.com/weir-dev/weir/policies/v1beta1"
)

// enforceTries is how often in a row an object that has changed is read and decided about again.
const enforceTries = 3

// sweepEvery is how often objects are forgotten whose end was not seen.
const sweepEvery = time.Minute

// propagator carries out the deletions of objects with Weir's finalizer as policies say.
//
// The finalizer holds the object until its propagation is decided, and until dependents that are to
// be kept are released. Where Weir collects, the graph is told the propagation, and finishes the
// object like any other, by one PATCH when nothing is left to wait for. Where the built-in
// collector does, the object is deleted again with another propagation policy, which the API server
// accepts for a deletion that is under way (RB 6.34). Its finalizer is removed when the watch shows
// that. An object that nothing refers to needs no propagation. Orphan is written down so with
// Weir's own collector, too: the next leader, another collector, and a user who removes Weir's
// finalizer by hand have to find that dependents are to be kept. A crash at any point leaves an
// object that is held, which the next leader finds.
//
// An object is decided about when the watch shows it, as the watch shows it. Only what policies
// need besides is read.
type propagator struct {
	store     *follow.Store
	requester *request.Client
	policies  *live.State
	reporter  *events.Reporter
	metrics   *metrics
	log       logr.Logger
	queue     workqueue.TypedRateLimitingInterface[types.UID]
	brake     Brake
	archive   *undo.Recorder       // nil: nothing is recorded
	collects  bool                 // the graph's decisions are carried out by this process
	shown     func(graph.Ref) bool // reports whether the watches have shown what was written before

	mu      sync.Mutex
	leading bool
	held    map[types.UID]*holding
	waiting int // held objects that are not ruled
}

// holding is what is known of a terminating object that carries Weir's finalizer. Only seen has a
// lock: one worker has the object at a time.
type holding struct {
	seen  *metav1.PartialObjectMetadata // as the watch showed it last; nil: not all of its metadata has been seen
	ruled bool                          // the graph knows its propagation
	given bool                          // it was deleted with the wanted propagation; losing this costs a request
	shown bool                          // the watches have shown what was written before its deletion
	late  bool                          // it waited for kinds that the built-in collector may see later than Weir
}

func newPropagator(o Options, m *metrics) *propagator {
	if o.Collects {
		// Dependents that are to be kept are released before the first is deleted, however a foreground
		// deletion was asked for.
		o.Store.Apply(graph.Holds{Finalizer: v1beta1.Finalizer})
	}
	return &propagator{
		store: o.Store, requester: o.Requester, policies: o.Policies, reporter: o.Reporter, metrics: m,
		collects: o.Collects, shown: o.Watcher.Shown, brake: o.Brake, archive: o.Archive, log: o.Log,
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.NewTypedItemExponentialFailureRateLimiter[types.UID](50*time.Millisecond, 30*time.Second),
			workqueue.TypedRateLimitingQueueConfig[types.UID]{Name: "propagation"}),
		held: map[types.UID]*holding{},
	}
}

// terminating is called with every object that is seen to terminate, when the graph has it.
func (s *propagator) terminating(m *metav1.PartialObjectMetadata) {
	carrying := slices.Contains(m.Finalizers, v1beta1.Finalizer)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.leading || s.held[m.UID] == nil && !carrying {
		return
	}
	kept := *m
	kept.ManagedFields = nil
	s.holdLocked(m.UID).seen = &kept
	s.queue.Forget(m.UID)
	s.queue.Add(m.UID)
}

// run enforces until ctx ends, beginning with objects that terminate already.
func (s *propagator) run(ctx context.Context) {
	s.mu.Lock()
	s.leading = true
	s.mu.Unlock()
	s.all()
	var wg sync.WaitGroup
	await.Work(&wg, s.requester.Limiter.Places(), s.queue, func(uid types.UID) { s.work(ctx, uid) })
	wg.Go(func() { s.requeueOnChange(ctx) })
	<-ctx.Done()
	s.queue.ShutDown()
	wg.Wait()
}

// all queues every object that terminates and carries the finalizer.
func (s *propagator) all() {
	for _, v := range s.store.Finalized(v1beta1.Finalizer) {
		if v.Deleting {
			s.queue.Add(v.UID)
		}
	}
}

// requeueOnChange queues all held objects when policies change, and forgets objects whose end was
// not seen.
func (s *propagator) requeueOnChange(ctx context.Context) {
	sweep := time.NewTicker(sweepEvery)
	defer sweep.Stop()
	for {
		changed := s.policies.Changed()
		select {
		case <-ctx.Done():
			return
		case <-changed:
			s.all()
		case <-sweep.C:
			s.mu.Lock()
			held := slices.Collect(maps.Keys(s.held))
			s.mu.Unlock()
			for _, uid := range held {
				if _, known := s.store.Find(uid); !known {
					s.forget(uid)
				}
			}
		}
	}
}

func (s *propagator) work(ctx context.Context, uid types.UID) {
	err := errChanged
	for try := 1; errors.Is(err, errChanged) && try <= enforceTries; try++ {
		err = s.enforce(s.requester.History.Mark(ctx), uid)
	}
	switch {
	case err == nil:
		s.queue.Forget(uid)
		return
	case ctx.Err() != nil:
		return
	case !errors.Is(err, errChanged) && !errors.Is(err, errWaits):
		s.log.Info("enforcing the propagation of a deletion failed, will try again", "uid", uid, "err", err.Error())
		s.metrics.enforced.WithLabelValues("failed").Inc()
	}
	s.queue.AddRateLimited(uid)
}

var (
	// errChanged: the object has changed since it was decided about.
	errChanged = errors.New("the object has changed")
	// errWaits: the object waits for something that may send no event.
	errWaits = errors.New("the deletion is held")
)

// enforce takes the next step of the deletion of one object.
func (s *propagator) enforce(ctx context.Context, uid types.UID) error {
	v, known := s.store.Find(uid)
	if !known || !v.Deleting || !slices.Contains(v.Finalizers, v1beta1.Finalizer) {
		s.forget(uid)
		return nil
	}
	if s.policies.Current() != nil {
		return errWaits // policies of a history that went back must not be carried out
	}
	s.mu.Lock()
	h := s.holdLocked(uid)
	s.mu.Unlock()
	object, m, err := s.read(ctx, v, h)
	if err != nil {
		return err
	}
	if m == nil || m.UID != uid || m.DeletionTimestamp == nil || !slices.Contains(m.Finalizers, v1beta1.Finalizer) {
		s.forget(uid)
		return nil
	}
	namespace, err := namespaceOf(ctx, s.policies, v.Namespace)
	if err != nil {
		return fmt.Errorf("judge the deletion of %s: %w", v.Ref, err)
	}
	gvk := s.requester.KindOf(v.Kind)
	enforcement := s.policies.Set().Enforce(policies.Stored(gvk, v.Kind.WithVersion(gvk.Version), object, namespace))
	state := deletionState{enforcement: enforcement, finalizers: m.Finalizers, unlisted: s.store.Incomplete(uid),
		collects: s.collects}
	state.given, state.late = h.given, h.late
	if enforcement.KeepsSome() || state.late {
		state.dependents = s.store.Dependents(uid)
	}
	if s.unshown(v.Ref, h, enforcement, &state) {
		return errWaits
	}
	s.limit(v.Ref, enforcement, &state)
	if a := enforcement.Archive; a != nil && s.archive != nil && !state.braked() {
		state.unrecorded, state.recordingFailed = s.archive.Recorded(undo.Unrecorded{Root: v,
			Deleted: *m.DeletionTimestamp, Archive: *a, Keeps: enforcement.Keeps, Again: func() { s.requeue(uid) }})
	}
	state.referred = v.Dependents > 0
	state.alone = !state.referred && state.unlisted == ""
	step := nextStep(state)
	s.log.V(1).Info("enforcing propagation", "object", v.String(), "uid", uid, "step", step.why)
	return s.carryOut(ctx, v, h, m, enforcement.Propagation, step)
}

// unshown reports whether an object is about to go that keeps dependents, or is recorded with them,
// while a dependent may have been written before its deletion that no watch has shown.
func (s *propagator) unshown(o graph.Ref, h *holding, e policies.Enforcement, state *deletionState) bool {
	keeps := e.Propagation == v1beta1.Orphan || e.KeepsSome() || e.Archive != nil
	if !keeps || len(state.left(e.Keeps)) > 0 {
		return false
	}
	h.shown = h.shown || s.shown(o)
	return !h.shown
}

// limit finds out whether the deletion is to be held because too much would also be deleted.
func (s *propagator) limit(o graph.Ref, e policies.Enforcement, to *deletionState) {
	if e.Limit == nil || e.Propagation == v1beta1.Orphan {
		s.brake.Ended(o.UID)
		return
	}
	complete := false
	s.store.Read(func(g *graph.Graph) {
		var all []graph.Counted
		all, complete, _ = g.Cascade(graph.Search{UID: o.UID, Kept: e.Keeps}, 0)
		for _, f := range all {
			to.goes += f.Count
		}
	})
	to.held = s.brake.Requested(o, e.Limit.By, e.Limit.Most, to.goes)
	to.uncounted = !complete && to.goes <= e.Limit.Most
}

// requeue has a deletion decided about again, at once.
func (s *propagator) requeue(uid types.UID) {
	s.queue.Forget(uid)
	s.queue.Add(uid)
}

// read returns the object as the watch showed it last. It is read live if policies look at more
// than metadata, or not all metadata was seen. It returns nil if the object is gone.
func (s *propagator) read(ctx context.Context, v graph.View, h *holding) (map[string]any,
	*metav1.PartialObjectMetadata, error) {
	_, full := s.policies.Set().AddsFinalizer(v.Kind)
	var object map[string]any
	s.mu.Lock()
	m, err := h.seen, error(nil)
	s.mu.Unlock()
	switch {
	case full:
		object, m, err = s.requester.GetFull(ctx, v.Ref)
	case m == nil:
		m, err = s.requester.GetObject(ctx, v.Ref)
	}
	if err != nil {
		if request.NoSuchObject(err, v.Kind, v.Name) {
			return nil, nil, nil
		}
		return nil, nil, fmt.Errorf("read %s: %w", v.Ref, err)
	}
	s.saw(h, m)
	if object == nil {
		object, err = runtime.DefaultUnstructuredConverter.ToUnstructured(m)
	}
	return object, m, err
}

// saw remembers what was read of an object, unless the watch has shown a later state meanwhile.
// With nil the object is read again.
func (s *propagator) saw(h *holding, m *metav1.PartialObjectMetadata) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m == nil || h.seen == nil || graph.VersionNumber(h.seen.ResourceVersion) < graph.VersionNumber(m.ResourceVersion) {
		h.seen = m
	}
}

func (s *propagator) holdLocked(uid types.UID) *holding {
	h := s.held[uid]
	if h == nil {
		h = &holding{}
		s.held[uid] = h
		s.waiting++
		s.metrics.waiting.Set(float64(s.waiting))
	}
	return h
}

func (s *propagator) forget(uid types.UID) {
	if s.archive != nil {
		s.archive.Ended(uid)
	}
	s.brake.Ended(uid)
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.held[uid]
	if h == nil {
		return
	}
	delete(s.held, uid)
	if !h.ruled {
		s.waiting--
		s.metrics.waiting.Set(float64(s.waiting))
	}
}
