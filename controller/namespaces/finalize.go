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

// finish lets a namespace go that is empty.
func (p *pass) finish(ctx context.Context, step drain.Step) (outcome, error) {
	if p.Companion {
		return p.requeue(ctx, step)
	}
	if len(p.ns.Finalizers) > 0 || len(p.ns.Spec.Finalizers) > 1 {
		// Others hold the namespace. Its conditions are read as long as they do.
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

// requeue makes the namespace controller look at a namespace that is empty, and of which nothing is
// held any more. That controller may have failed so often that it would not look for a minute (RB
// 7.8). It is asked again until the namespace is gone.
func (p *pass) requeue(ctx context.Context, step drain.Step) (outcome, error) {
	if left := requeueEvery - time.Since(p.requeued); left > 0 {
		return recheck(left), nil
	}
	if same, err := p.enter(ctx, step.Current); err != nil || !same {
		return finished, err
	}
	p.requeued = time.Now()
	described := func(c corev1.NamespaceCondition) bool { return c.Type == drain.Draining }
	if slices.ContainsFunc(p.ns.Status.Conditions, described) {
		if _, err := p.describe(ctx, step); err != nil {
			return pending, err
		}
	}
	p.Log.Info("drained", "namespace", p.ns.Name, "uid", p.ns.UID, "why", step.Why)
	return recheck(requeueEvery), nil
}

// finalize removes Kubernetes' finalizer from the spec of a namespace, which then goes unless
// something else holds it.
func (d *Drainer) finalize(ctx context.Context, ns *corev1.Namespace) (outcome, error) {
	name, uid := ns.Name, ns.UID
	for range 5 {
		ns.Spec.Finalizers = slices.DeleteFunc(ns.Spec.Finalizers, func(f corev1.FinalizerName) bool {
			return f == corev1.FinalizerKubernetes
		})
		_, err := d.Namespaces.Finalize(ctx, ns, metav1.UpdateOptions{})
		switch {
		case err == nil:
			d.Log.Info("finalized", "namespace", name, "uid", uid, "why", "nothing is left in it")
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
