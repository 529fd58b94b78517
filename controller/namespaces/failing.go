package namespaces

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/drain"
	"github.com/weir-dev/weir/controller/events"
	"github.com/weir-dev/weir/controller/follow"
	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/kinds"
)

const (
	// failuresEvery is how often a failure is reported at most. A written condition wakes the drainer,
	// and the next error may have other words; without a pause one would follow the other at once.
	failuresEvery = time.Minute
	// mostTelling bounds how long a worker takes to report a failure.
	mostTelling = 5 * time.Second
)

// errNotDescribed is about conditions alone. The drain goes on without them.
var errNotDescribed = errors.New("write conditions")

// failing records how a pass ended. Once passes have failed for a while it reports on the namespace
// that its drain does not go on, because its conditions still say what it waited for before. A
// namespace that was never read has no known uid, and only the log has its failure. Without contact
// to the API server nothing can be written, and that is no failure of the namespace.
func (d *Drainer) failing(ctx context.Context, name string, err error) {
	goesOn := err == nil || errors.Is(err, follow.ErrNoContact) || errors.Is(err, follow.ErrRewound) ||
		errors.Is(err, errNotDescribed)
	now := time.Now()
	d.mu.Lock()
	e, is := d.ending[name]
	uid, before := e.uid, !e.failing.IsZero()
	tell := !goesOn && before && uid != "" && now.Sub(e.failing) >= blockedAfter && now.Sub(e.told) >= failuresEvery
	switch {
	case goesOn:
		e.failing, e.told = time.Time{}, time.Time{}
	case !before:
		e.failing = now
	case tell:
		e.told = now
	}
	if is {
		d.ending[name] = e
	}
	d.mu.Unlock()
	if !tell {
		return
	}
	step := drain.Step{Verb: drain.Wait, Failed: true, Why: "draining does not go on: " + err.Error()}
	d.Reporter.Once(graph.Ref{Kind: kinds.Namespaces, Name: name, UID: uid}, events.ReasonWaveBlocked, step.Why)
	if err := d.describeFailure(ctx, name, uid, step); err != nil {
		d.Log.V(1).Info("cannot write the condition", "namespace", name, "err", err.Error())
	}
}

// describeFailure writes Weir's own condition. The others stay as they were last written.
func (d *Drainer) describeFailure(ctx context.Context, name string, uid types.UID, step drain.Step) error {
	ctx, cancel := context.WithTimeout(ctx, mostTelling)
	defer cancel()
	// The answer that made the pass fail may have closed the gate for a moment.
	ctx, err := d.Requester.History.Enter(ctx)
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
