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
	"github.com/weir-dev/weir/controller/kinds"
	"github.com/weir-dev/weir/controller/request"
)

// finish lets a namespace go in which nothing is left.
func (p *pass) finish(ctx context.Context, step drain.Step) (outcome, error) {
	if p.Companion {
		return p.requeue(ctx, step)
	}
	if len(p.ns.Finalizers) > 0 || len(p.ns.Spec.Finalizers) > 1 {
		// Others hold it. What the conditions say is read for as long as they do.
		if _, err := p.describe(ctx, step); err != nil {
			return pending, err
		}
	}
	o, err := p.finalize(ctx, p.ns)
	if err == nil && o.done {
		p.record()
	}
	return o, err
}

// requeue makes the namespace controller look again, now that nothing is left and nothing of it is
// held: it may have been refused so often that it would not for a minute (RB 7.8). Until it has let
// the namespace go, it is asked again.
func (p *pass) requeue(ctx context.Context, step drain.Step) (outcome, error) {
	if left := requeueEvery - time.Since(p.requeued); left > 0 {
		return recheck(left), nil
	}
	if same, err := p.enter(ctx, step.Current); err != nil || !same {
		return finished, err
	}
	p.requeued = time.Now()
	if slices.ContainsFunc(p.ns.Status.Conditions, func(c corev1.NamespaceCondition) bool { return c.Type == drain.Draining }) {
		if _, err := p.describe(ctx, step); err != nil {
			return pending, err
		}
	}
	p.Log.Info("drained", "namespace", p.ns.Name, "uid", p.ns.UID, "why", step.Why)
	return recheck(requeueEvery), nil
}

// finalize takes our finalizer off a namespace's spec: what is not held otherwise goes with it.
func (d *Drainer) finalize(ctx context.Context, ns *corev1.Namespace) (outcome, error) {
	name, uid := ns.Name, ns.UID
	for range 5 {
		ns.Spec.Finalizers = slices.DeleteFunc(ns.Spec.Finalizers, func(f corev1.FinalizerName) bool { return f == corev1.FinalizerKubernetes })
		_, err := d.Namespaces.Finalize(ctx, ns, metav1.UpdateOptions{})
		switch {
		case err == nil:
			d.Log.Info("finalized", "namespace", name, "uid", uid, "why", "nothing is left in it")
			d.ended(name, uid)
			return finished, nil
		case request.NoSuchObject(err, kinds.Namespaces, name):
			return finished, nil
		}
		if !apierrors.IsConflict(err) {
			return pending, fmt.Errorf("finalize namespace %s: %w", name, err)
		}
		if ns, err = d.reread(ctx, name, uid); ns == nil {
			return finished, err
		}
	}
	return pending, fmt.Errorf("finalize namespace %s: it changes all the time", name)
}
