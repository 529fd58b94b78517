package enforce

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/controller/events"
	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/request"
	"github.com/weir-dev/weir/policies/v1beta1"
)

// carryOut carries out a step of the deletion of an object.
func (s *propagator) carryOut(ctx context.Context, v graph.View, h *holding, m *metav1.PartialObjectMetadata,
	want v1beta1.PropagationPolicy, step deletionStep) error {
	log := s.log.WithValues("object", v.String(), "uid", v.UID, "why", step.why)
	ref := v.Ref
	ref.ResourceVersion = m.ResourceVersion
	switch {
	case step.wait:
		h.late = h.late || step.late
		s.rule(ref, h, "") // an earlier ruling no longer counts
		if !step.soon {
			s.reporter.Once(v.Ref, events.ReasonHeld, step.why)
		}
		return errWaits
	case len(step.release) > 0:
		s.rule(ref, h, "")
		if err := s.release(ctx, v, step); err != nil {
			return err
		}
		return errChanged // the rest is another step
	case s.collects && step.propagation != metav1.DeletePropagationOrphan:
		s.rule(ref, h, want)
		log.Info("propagation enforced", "propagation", want)
		return nil
	case step.propagation != "":
		err := s.requester.Delete(ctx, ref, step.propagation)
		if err != nil {
			return s.after(h, graph.Action{Verb: graph.Delete, Object: ref, Propagation: step.propagation,
				Why: step.why}, err)
		}
		h.given = true
		s.rule(ref, h, want) // it goes on as the API server has it; both finalizers are removed at once
		log.Info("propagation enforced", "propagation", step.propagation)
		return nil // the watch shows it
	}
	a := graph.Action{
		Verb: graph.Unfinalize, Object: ref, Why: step.why, Finalizer: v1beta1.Finalizer,
		Finalizers: slices.DeleteFunc(slices.Clone(m.Finalizers), func(f string) bool {
			return f == v1beta1.Finalizer
		}),
	}
	if err := s.requester.Patch(ctx, a, ref.ResourceVersion); err != nil {
		return s.after(h, a, err)
	}
	s.forget(v.UID)
	s.metrics.enforced.WithLabelValues("done").Inc()
	log.Info("finalizer removed")
	return nil
}

// after returns the error of a failed request. If the object has changed, that is errChanged, and
// the object is read again.
func (s *propagator) after(h *holding, a graph.Action, err error) error {
	switch o := request.OutcomeAbout(a.Object, err); o {
	case request.Stale, request.Gone:
		s.saw(h, nil)
		return errChanged
	case request.Refused, request.Failed:
		s.reporter.Refused(a, o, err, s.queue.NumRequeues(a.Object.UID))
	case request.OK, request.Throttled, request.Cancelled:
	}
	return fmt.Errorf("%s: %w", a.Words(a.Object.String()), err)
}

// rule tells the graph how a deletion goes on, if this process collects; "" holds the object.
func (s *propagator) rule(ref graph.Ref, h *holding, p v1beta1.PropagationPolicy) {
	if !s.collects {
		return
	}
	s.store.Apply(graph.Ruled{Kind: ref.Kind, UID: ref.UID, Finalizer: v1beta1.Finalizer,
		Propagation: metav1.DeletionPropagation(p)})
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held[ref.UID] == h && h.ruled != (p != "") {
		if h.ruled = !h.ruled; h.ruled {
			s.waiting--
			s.metrics.enforced.WithLabelValues("done").Inc()
		} else {
			s.waiting++
		}
		s.metrics.waiting.Set(float64(s.waiting))
	}
}

// release removes the references to an owner from dependents that are to be kept.
func (s *propagator) release(ctx context.Context, owner graph.View, step deletionStep) error {
	var group errgroup.Group
	group.SetLimit(s.requester.Limiter.Places())
	// The text is the same each time, however many others are left.
	why := fmt.Sprintf("it is to be kept though its owner %s is deleted", owner.Ref)
	for _, d := range step.release {
		a := graph.Action{Verb: graph.Release, Object: d.Ref, Owners: []metav1.OwnerReference{}, Why: why}
		for _, o := range d.Owners {
			if o.UID != owner.UID {
				a.Owners = append(a.Owners, o.OwnerReference)
			}
		}
		group.Go(func() error {
			if d.Unfollowed > 0 { // the patch lists all references that stay, and not all are known
				return fmt.Errorf("release %s from %s: it has %d owner references, and no more than %d are "+
					"followed: remove those that it does not need", d.Ref, owner.Ref,
					len(d.Owners)+d.Unfollowed, graph.MostOwners)
			}
			err := s.requester.Patch(ctx, a, d.ResourceVersion)
			switch o := request.OutcomeAbout(d.Ref, err); o {
			case request.OK:
				s.store.Accepted(a) // it is not asked for again, and not deleted, before the watch shows it
				s.log.Info("released from an owner", "object", d.String(), "owner", owner.String(),
					"why", step.why)
				return nil
			case request.Stale, request.Gone: // the watch will show what it has become
				return errWaits
			case request.Refused, request.Failed:
				// Reported on the dependent, where whoever refused it will look.
				s.reporter.Refused(a, o, err, s.queue.NumRequeues(owner.UID))
			case request.Throttled, request.Cancelled:
			}
			return fmt.Errorf("release %s from %s: %w", d.Ref, owner.Ref, err)
		})
	}
	return group.Wait()
}
