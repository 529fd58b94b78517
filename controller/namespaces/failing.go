package namespaces

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/drain"
	"github.com/weir-dev/weir/controller/follow"
	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/kinds"
	"github.com/weir-dev/weir/controller/request"
)

// failing takes in how a pass ended, and tells on the namespace that its draining does not go on, once that has been so for a while: its conditions say what
// it waited for before. Of a namespace that was never read no more is known than its name; the log has it. While there is no contact nothing can be written,
// and it is no error of the namespace.
func (d *Drainer) failing(ctx context.Context, name string, err error) {
	lost := errors.Is(err, follow.ErrNoContact) || errors.Is(err, follow.ErrRewound)
	d.mu.Lock()
	since, before := d.failed[name]
	switch {
	case err == nil || lost:
		delete(d.failed, name)
	case !before:
		d.failed[name] = time.Now()
	}
	uid := d.ending[name].uid
	d.mu.Unlock()
	if err == nil || lost || !before || uid == "" || time.Since(since) < blockedAfter {
		return
	}
	step := drain.Step{Verb: drain.Wait, Failed: true, Why: "draining does not go on: " + err.Error()}
	d.Reporter.Blocked(graph.Ref{Kind: kinds.Namespaces, Name: name, UID: uid}, step.Why)
	if err := d.describeFailure(ctx, name, uid, step); err != nil {
		d.Log.V(1).Info("cannot write the condition", "namespace", name, "err", err.Error())
	}
}

// describeFailure writes Weir's own condition. What is counted stands as it was counted last.
func (d *Drainer) describeFailure(ctx context.Context, name string, uid types.UID, step drain.Step) error {
	ctx, cancel := context.WithTimeout(ctx, request.Timeout)
	defer cancel()
	ctx, err := d.Requester.History.Enter(ctx) // an answer that tells of a failing API server has closed the gate for a moment
	if err != nil {
		return err
	}
	ns, err := d.reread(ctx, name, uid)
	if ns == nil {
		return err
	}
	merged, changed := mergeConditions(ns.Status.Conditions, []corev1.NamespaceCondition{drain.DrainingCondition(step)})
	if !changed {
		return nil
	}
	ns.Status.Conditions = merged
	_, err = d.Namespaces.UpdateStatus(ctx, ns, metav1.UpdateOptions{})
	return err
}
