package enforce

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

	"github.com/weir-dev/weir/controller/await"
	"github.com/weir-dev/weir/policies"
	"github.com/weir-dev/weir/policies/live"
	"github.com/weir-dev/weir/policies/v1beta1"
)

// statusEvery bounds how often a policy's status is written.
const statusEvery = time.Second

// servedEvery is how often it is checked whether the resources that policies name are served.
// Discovery sends no events.
const servedEvery = 30 * time.Second

// statusWriter writes the status of policies.
type statusWriter struct {
	client   dynamic.Interface
	policies *live.State
	board    *board
	served   func() served
	drains   reach       // what is known of waves without the webhook
	files    *fileReport // nil: policies that are files are not reported
	metrics  *metrics
	log      logr.Logger
}

func (w *statusWriter) run(ctx context.Context) {
	for {
		changed := w.policies.Changed()
		now, news := w.board.read()
		set := w.policies.Set()
		f := facts{reached: now.asked.about(set), drains: w.drains, serves: w.served()}
		if now.judged.of == set {
			f.judged = now.judged.says
		}
		if now.counted.of == set {
			f.counted = now.counted
		}
		pause := servedEvery
		if failed := w.write(ctx, f); failed {
			pause = 5 * statusEvery
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-news:
		case <-time.After(pause):
		}
		if await.Pause(ctx, statusEvery) != nil {
			return
		}
	}
}

// facts are what is known for the status of policies.
type facts struct {
	counted counted
	reached reach
	judged  map[policies.PolicyKey]reach // by the API server itself
	drains  reach
	serves  served
}

// write brings the status of every policy up to date, and reports whether one failed.
func (w *statusWriter) write(ctx context.Context, f facts) (failed bool) {
	states := map[string]int{"ready": 0, "broken": w.policies.Unreadable()}
	w.metrics.policy.Reset()
	all := w.policies.Set().Statuses()
	for _, s := range all {
		state, source := "broken", "object"
		if s.Ready {
			state = "ready"
		}
		if s.File != "" {
			source = "file"
		}
		states[state]++
		w.metrics.policy.WithLabelValues(s.Policy.Kind, s.Policy.Name, source, state).Set(1)
		object := w.policies.Object(s.Policy)
		if s.File != "" || object == nil {
			continue
		}
		if err := w.writeOne(ctx, s, object, f); err != nil && ctx.Err() == nil {
			w.log.Info("cannot write the status of a policy", "policy", s.Policy.String(), "err", err.Error())
			failed = true
		}
	}
	if err := w.files.write(ctx, all, f); err != nil && ctx.Err() == nil {
		w.log.Info("cannot tell of policies that are files", "err", err.Error())
		failed = true
	}
	for state, n := range states {
		w.metrics.policies.WithLabelValues(state).Set(float64(n))
	}
	return failed
}

// anyStatus is the status of a policy of any kind.
type anyStatus struct {
	v1beta1.DeletionPolicyStatus `json:",inline"`
	Waves                        string `json:"waves,omitempty"`
}

func (w *statusWriter) writeOne(ctx context.Context, s policies.Status, object map[string]any, f facts) error {
	u := unstructured.Unstructured{Object: object}
	var have anyStatus
	if status, ok := object["status"].(map[string]any); ok {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(status, &have); err != nil {
			return fmt.Errorf("read the status: %w", err)
		}
	}
	want := anyStatus{*have.DeepCopy(), s.Waves}
	want.say(s, u.GetGeneration(), f)
	if equality.Semantic.DeepEqual(have, want) {
		return nil
	}
	patch, err := statusPatch(u.GetUID(), have, want)
	if err != nil {
		return fmt.Errorf("encode the status: %w", err)
	}
	_, err = w.client.Resource(live.Resource(s.Policy.Kind)).Patch(ctx, s.Policy.Name, types.MergePatchType, patch,
		metav1.PatchOptions{}, "status")
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // it is gone or was replaced; the watch will show that
	}
	return err
}

// statusPatch returns a merge patch from one status to another. It sets to null the fields that
// would otherwise stay.
func statusPatch(uid types.UID, have, want anyStatus) ([]byte, error) {
	before, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&have)
	if err != nil {
		return nil, err
	}
	status, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&want)
	if err != nil {
		return nil, err
	}
	for field := range before {
		if _, stays := status[field]; !stays {
			status[field] = nil
		}
	}
	return json.Marshal(map[string]any{"metadata": map[string]any{"uid": uid}, "status": status})
}

// say sets what is known in a status. What is not known stays as it was.
func (want *anyStatus) say(s policies.Status, generation int64, f facts) {
	set := func(of string, r reach) {
		if r.status != "" {
			meta.SetStatusCondition(&want.Conditions, metav1.Condition{Type: of, ObservedGeneration: generation,
				Status: r.status, Reason: r.reason, Message: r.message})
		}
	}
	enforced := f.reached
	switch {
	case !s.Ready:
		enforced = reach{metav1.ConditionFalse, v1beta1.ReasonNotValid, notInForce}
	case s.Policy.Kind == "DrainPolicy" && f.drains.status != "":
		enforced = f.drains
	}
	last := enforced
	if c := meta.FindStatusCondition(want.Conditions, v1beta1.ConditionEnforced); last.status == "" && c != nil &&
		c.ObservedGeneration >= generation {
		last = reach{c.Status, c.Reason, c.Message}
	}
	set(v1beta1.ConditionReady, holds(s, last, f.judged[s.Policy]))
	valid := reach{metav1.ConditionTrue, v1beta1.ReasonCompiled, "the policy can be judged as it is written"}
	if !s.Ready {
		valid = reach{metav1.ConditionFalse, v1beta1.ReasonInvalid, s.Message}
	}
	set(v1beta1.ConditionValid, valid)
	want.count(s, f.counted)
	filled := s.Propagates && (f.counted.tallies[s.Policy].wanted > 0 || f.counted.done) || s.Brakes && f.counted.done
	if !s.Ready { // the last counts stay
		filled = meta.FindStatusCondition(want.Conditions, v1beta1.ConditionBackFilled) != nil
	}
	if filled {
		set(v1beta1.ConditionBackFilled, backFilled(s, f.counted))
	}
	set(v1beta1.ConditionResolved, f.serves.resolved(s.Names))
	set(v1beta1.ConditionEnforced, enforced)
	set(v1beta1.ConditionInProcess, f.judged[s.Policy])
}

// count sets what was counted, and removes what the policy no longer asks for. What a policy asks
// for that cannot be compiled is not known.
func (want *anyStatus) count(s policies.Status, now counted) {
	if !s.Ready {
		return
	}
	if s.Uncounted {
		want.Matched, want.WithFinalizer = nil, nil
	}
	if !s.Propagates {
		want.WithFinalizer = nil
		if !s.Brakes {
			meta.RemoveStatusCondition(&want.Conditions, v1beta1.ConditionBackFilled)
		}
	}
	t, known := now.tallies[s.Policy]
	switch {
	case s.Uncounted:
	case s.Propagates && (t.wanted > 0 || now.done):
		want.Matched, want.WithFinalizer = &t.wanted, &t.carrying
	case !s.Propagates && known && now.complete && !t.unknown:
		want.Matched = &t.matched
	}
}

// holds returns the condition Ready, from the condition Enforced and what the API server judges by
// itself.
func holds(s policies.Status, enforced, judged reach) reach {
	meanwhile := "requests pass unjudged (failurePolicy Ignore)"
	if s.FailsClosed {
		meanwhile = "requests that the policy matches are refused (failurePolicy Fail)"
	}
	switch judged.reason {
	case v1beta1.ReasonJudged:
		meanwhile = "the API server judges the policy by itself"
	case v1beta1.ReasonPartial:
		meanwhile = "but for what the API server judges by itself (condition InProcess), " + meanwhile
	}
	drains := s.Policy.Kind == "DrainPolicy"
	switch {
	case !s.Ready:
		return reach{metav1.ConditionFalse, v1beta1.ReasonInvalid, s.Message}
	case enforced.status == "":
		return reach{metav1.ConditionUnknown, v1beta1.ReasonNotTried, "it is not known yet whether the policy is enforced"}
	case enforced.status == metav1.ConditionTrue && drains:
		return reach{metav1.ConditionTrue, v1beta1.ReasonInForce, "the policy is in force"}
	case enforced.status == metav1.ConditionTrue:
		return reach{metav1.ConditionTrue, v1beta1.ReasonInForce, "the policy is in force; while Weir does not answer, " +
			meanwhile}
	case !drains:
		enforced.message = meanwhile + ": " + enforced.message
	}
	return enforced
}

// notInForce is the message of the other conditions of a policy that cannot be compiled.
const notInForce = "the policy is not in force: the condition Valid says why"

func backFilled(s policies.Status, now counted) reach {
	switch {
	case !s.Ready:
		return reach{metav1.ConditionUnknown, v1beta1.ReasonNotValid, notInForce}
	case now.done:
		return reach{metav1.ConditionTrue, v1beta1.ReasonDone, "all objects that the policy matches are as it asks"}
	}
	says := "the finalizer is being added to objects that existed before"
	if !s.Uncounted {
		says += "; status.withFinalizer says how far"
	}
	if now.waits != "" {
		says += ": " + now.waits
	}
	return reach{metav1.ConditionFalse, v1beta1.ReasonInProgress, says}
}

// notConfigured is the reach of a process that writes no webhook configuration, so that the API
// server does not call the webhook.
var notConfigured = reach{metav1.ConditionFalse, v1beta1.ReasonNotConfigured,
	"no webhook configuration asks Weir, and Weir judges nothing: neither --webhook-service nor --webhook-url says " +
		"where the webhook is"}
