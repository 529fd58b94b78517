package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/weir-dev/weir/policies"
	"github.com/weir-dev/weir/policies/live"
	"github.com/weir-dev/weir/policies/v1alpha1"
)

// statusEvery bounds how often a policy's status is written.
const statusEvery = time.Second

// statusWriter says on the policies what has been made of them.
type statusWriter struct {
	client   dynamic.Interface
	policies *live.State
	backFill *backFill
	metrics  *enforcementMetrics
	log      logr.Logger
}

func (w *statusWriter) run(ctx context.Context) {
	for {
		changed := w.policies.Changed()
		tallies, done, progress := w.backFill.progress()
		failed := w.write(ctx, tallies, done)
		var again <-chan time.Time
		if failed {
			again = time.After(5 * statusEvery)
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-progress:
		case <-again:
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(statusEvery):
		}
	}
}

// write brings the status of every policy up to date, and tells whether one could not be.
func (w *statusWriter) write(ctx context.Context, tallies map[string]tally, done bool) (failed bool) {
	ready, broken := 0, w.policies.Unreadable()
	for _, s := range w.policies.Set().Statuses() {
		if s.Ready {
			ready++
		} else {
			broken++
		}
		object := w.policies.Object(s.Policy)
		if s.File != "" || object == nil {
			continue
		}
		var tallied *tally
		if t, ok := tallies[s.Policy.Name]; s.Policy.Kind == "DeletionPolicy" && (ok || done) {
			tallied = &t
		}
		if err := w.writeOne(ctx, s, object, tallied, done); err != nil && ctx.Err() == nil {
			w.log.Info("cannot write the status of a policy", "policy", s.Policy.String(), "err", err.Error())
			failed = true
		}
	}
	w.metrics.policies.WithLabelValues("ready").Set(float64(ready))
	w.metrics.policies.WithLabelValues("broken").Set(float64(broken))
	return failed
}

func (w *statusWriter) writeOne(ctx context.Context, s policies.Status, object map[string]any, t *tally, done bool) error {
	u := unstructured.Unstructured{Object: object}
	var have v1alpha1.DeletionPolicyStatus
	if status, ok := object["status"].(map[string]any); ok {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(status, &have); err != nil {
			return fmt.Errorf("read the status: %w", err)
		}
	}
	want := *have.DeepCopy()
	meta.SetStatusCondition(&want.Conditions, readiness(s, u.GetGeneration()))
	if t != nil {
		want.Matched, want.Stamped = &t.matched, &t.stamped
		meta.SetStatusCondition(&want.Conditions, backFilled(done, u.GetGeneration()))
	}
	if equality.Semantic.DeepEqual(have, want) {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": u.GetUID()}, "status": want})
	if err != nil {
		return fmt.Errorf("encode the status: %w", err)
	}
	_, err = w.client.Resource(live.Resource(s.Policy.Kind)).Patch(ctx, s.Policy.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // it is gone, or another by now: that comes with the watch
	}
	return err
}

func readiness(s policies.Status, generation int64) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionReady, ObservedGeneration: generation,
		Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonCompiled, Message: "the policy is in force"}
	if !s.Ready {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, v1alpha1.ReasonInvalid, s.Message
	}
	return c
}

func backFilled(done bool, generation int64) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionBackFilled, ObservedGeneration: generation,
		Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonDone, Message: "all objects that the policy is about are as it asks"}
	if !done {
		c.Status, c.Reason = metav1.ConditionFalse, v1alpha1.ReasonInProgress
		c.Message = "objects that existed before are being stamped; status.stamped says how far"
	}
	return c
}
