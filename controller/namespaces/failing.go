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
)

// failure is that passes of a namespace end in errors.
type failure struct{ since, told time.Time }

const (
	// failuresEvery is how often a failure is told at most. What is written wakes the drainer, and
	// the next error may have other words: without a pause the one would follow the other as fast
	// as requests go.
	failuresEvery = time.Minute
	// mostTelling is how long a worker takes for that: whoever comes later can tell it, too.
	mostTelling = 5 * time.Second
)

// errNotDescribed is about the conditions alone: the draining goes on without them.
var errNotDescribed = errors.New("write conditions")

// failing takes in how a pass ended, and tells on the namespace that its draining does not go on,
// once that has been so for a while: its conditions say what it waited for before. Of a namespace
// that was never read no more is known than its name; the log has it. While there is no contact
// nothing can be written, and it is no error of the namespace.
func (d *Drainer) failing(ctx context.Context, name string, err error) {
	goesOn := err == nil || errors.Is(err, follow.ErrNoContact) || errors.Is(err, follow.ErrRewound) || errors.Is(err, errNotDescribed)
	now := time.Now()
	d.mu.Lock()
	f, before := d.failed[name]
	uid := d.ending[name].uid
	tell := !goesOn && before && uid != "" && now.Sub(f.since) >= blockedAfter && now.Sub(f.told) >= failuresEvery
	switch {
	case goesOn:
		delete(d.failed, name)
	case !before:
		d.failed[name] = failure{since: now}
	case tell:
		d.failed[name] = failure{f.since, now}
	}
	d.mu.Unlock()
	if !tell {
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
	ctx, cancel := context.WithTimeout(ctx, mostTelling)
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
