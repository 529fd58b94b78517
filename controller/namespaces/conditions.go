package namespaces

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/controller/drain"
	"github.com/weir-dev/weir/controller/events"
	"github.com/weir-dev/weir/controller/follow"
	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/kinds"
)

// wait writes what the namespace waits for, and returns when to look again at the latest. A change
// of its content wakes it earlier.
func (p *pass) wait(ctx context.Context, step drain.Step) (outcome, error) {
	if step.Recheck > 0 {
		p.wake(p.ns.Name, "its wave may have timed out", step.Recheck)
	}
	rest := pending
	if step.Verb == drain.Discover {
		rest = recheck(follow.DiscoveryRetry) // followOthers wakes it when it is done
	}
	if left := max(conditionsAfter-time.Since(p.since), conditionsEvery-time.Since(p.reported)); left > 0 {
		return recheck(left), nil
	}
	p.recount() // deletes have had an effect
	if step = drain.Next(p.state); step.Verb != drain.Wait && step.Verb != drain.Discover {
		return recheck(settleTime), nil
	}
	p.reported = time.Now()
	p.nameFirst(step)
	step = drain.Next(p.state)
	p.tell(step)
	changed, err := p.describe(ctx, step)
	if changed && err == nil {
		p.Log.Info("waiting", "namespace", p.ns.Name, "why", step.Why)
	}
	return rest, err
}

// nameFirst finds one object to name for each kind that the step waits for. The graph has no order,
// so this looks at all objects. It is done only when a condition or message is to be written.
func (p *pass) nameFirst(step drain.Step) {
	for i := range p.state.Kinds {
		k := &p.state.Kinds[i]
		if k.Wave > step.Wave || k.Total == 0 || !p.followed.Has(k.Kind) {
			continue
		}
		for v := range p.Store.Content(p.ns.Name, k.Kind) {
			first(k, v.Namespace, v.Name, v.Deleting, v.Finalizers)
		}
	}
}

// first keeps the terminating object that comes first by name.
func first(k *drain.Kind, namespace, name string, deleting bool, finalizers []string) {
	if deleting && (k.First == nil || name < k.First.Name) {
		k.First = &drain.Object{Namespace: namespace, Name: name, Terminating: true, Finalizers: slices.Clone(finalizers)}
	}
}

// tell sends an Event about a wave that has waited for the same thing for a while, or has timed
// out.
func (p *pass) tell(step drain.Step) {
	if step.Why != p.why {
		p.why, p.whyAt = step.Why, time.Now()
	}
	if left := blockedAfter - time.Since(p.whyAt); left > 0 && !step.TimedOut {
		p.wake(p.ns.Name, "what it waits for may be to be told", left)
		return
	}
	ref := graph.Ref{Kind: kinds.Namespaces, Name: p.ns.Name, UID: p.ns.UID, ResourceVersion: p.ns.ResourceVersion}
	p.Reporter.Once(ref, events.ReasonWaveBlocked, step.Why)
}

// describe writes the conditions of the namespace if they differ from those wanted. Beside the
// namespace controller, which writes its own five, it writes only Weir's.
func (p *pass) describe(ctx context.Context, step drain.Step) (changed bool, err error) {
	wanted := drain.Conditions(p.state, step)
	if p.Companion {
		wanted = []corev1.NamespaceCondition{drain.DrainingCondition(step)}
	}
	p.ns.Status.Conditions, changed = mergeConditions(p.ns.Status.Conditions, wanted)
	if !changed {
		return false, nil
	}
	ns, err := p.Namespaces.UpdateStatus(ctx, p.ns, metav1.UpdateOptions{})
	switch {
	case err == nil:
		p.ns = ns
	case !apierrors.IsConflict(err) && !apierrors.IsNotFound(err):
		return true, fmt.Errorf("%w of namespace %s: %w", errNotDescribed, p.ns.Name, err)
	}
	return true, nil // after a conflict the next pass writes them
}

// mergeConditions puts the wanted conditions over the present ones. Others stay, and the time of a
// transition changes only with the status.
func mergeConditions(present, wanted []corev1.NamespaceCondition) (merged []corev1.NamespaceCondition, changed bool) {
	merged = slices.Clone(present)
	for _, w := range wanted {
		w.LastTransitionTime = metav1.Now()
		i := slices.IndexFunc(merged, func(c corev1.NamespaceCondition) bool { return c.Type == w.Type })
		if i < 0 {
			merged, changed = append(merged, w), true
			continue
		}
		if merged[i].Status == w.Status {
			w.LastTransitionTime = merged[i].LastTransitionTime
		}
		if merged[i] != w {
			merged[i], changed = w, true
		}
	}
	return merged, changed
}
