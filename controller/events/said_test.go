package events

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/request"
	"github.com/weir-dev/weir/policies"
)

// said records Events in one line each, with what they are on.
type said struct{ lines []string }

func (s *said) Event(on runtime.Object, level, reason, message string) {
	o := on.(*corev1.ObjectReference)
	s.lines = append(s.lines, fmt.Sprintf("%s %s %s/%s %s: %s", level, reason, o.Kind, o.Name, o.Namespace, message))
}

func (s *said) Eventf(on runtime.Object, level, reason, format string, args ...any) {
	s.Event(on, level, reason, fmt.Sprintf(format, args...))
}

func (s *said) AnnotatedEventf(on runtime.Object, _ map[string]string, level, reason, format string, args ...any) {
	s.Eventf(on, level, reason, format, args...)
}

func newReporter() (r *Reporter, own, asReference *said) {
	own, asReference = &said{}, &said{}
	return New(own, asReference, func(gr schema.GroupResource) schema.GroupVersionKind {
		return schema.GroupVersionKind{Group: gr.Group, Version: "v1", Kind: "Pod"}
	}), own, asReference
}

var web = graph.Ref{Kind: schema.GroupResource{Resource: "pods"}, Namespace: "shop", Name: "web", UID: "u"}

func expect(t *testing.T, what string, got *said, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, got.lines); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
	got.lines = nil
}

// Tools know the reference's Event by its words, and by who sends it.
func TestAnOwnerInAnotherNamespaceIsToldInTheReferencesWordsAndOnce(t *testing.T) {
	r, own, asReference := newReporter()
	a := graph.Action{Object: web, Mismatched: &metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-1", UID: "o"}}
	r.Decided(a)
	r.Decided(a)
	expect(t, "as the reference", asReference, `Warning OwnerRefInvalidNamespace Pod/web shop: ownerRef [apps/v1/ReplicaSet, namespace: shop, name: web-1, uid: o] does not exist in namespace "shop"`)
	expect(t, "by weir", own)
}

func TestAFailureIsToldWhenItLastsAndARefusalAtOnce(t *testing.T) {
	a := graph.Action{Verb: graph.Delete, Object: web, Why: "its owner is gone"}
	for name, c := range map[string]struct {
		outcome  request.Outcome
		tries    int
		reported bool
	}{
		"a failure that may pass": {request.Failed, failuresBeforeEvent - 1, false},
		"a failure that lasts":    {request.Failed, failuresBeforeEvent, true},
		"a refusal":               {request.Refused, 1, true},
	} {
		r, own, _ := newReporter()
		r.Refused(a, c.outcome, errors.New("no"), c.tries)
		if reported := len(own.lines) == 1; reported != c.reported {
			t.Errorf("%s: told: %t: %q", name, reported, own.lines)
		}
	}
	r, own, _ := newReporter()
	r.Refused(a, request.Refused, errors.New("no"), 1)
	r.Refused(a, request.Refused, errors.New("no"), 2)
	expect(t, "the same", own, "Warning CollectionRefused Pod/web shop: cannot "+graph.Delete.String()+" (its owner is gone): no")
	r.Refused(a, request.Refused, errors.New("not now"), 3)
	expect(t, "another", own, "Warning CollectionRefused Pod/web shop: cannot "+graph.Delete.String()+" (its owner is gone): not now")
	r.Succeeded(a)
	r.Refused(a, request.Refused, errors.New("not now"), 1)
	expect(t, "after success", own, "Warning CollectionRefused Pod/web shop: cannot "+graph.Delete.String()+" (its owner is gone): not now")
}

// What is well is Normal, and what is not known is not told.
func TestTheLevelOfAnEventSaysWhetherThereIsSomethingToDo(t *testing.T) {
	r, own, _ := newReporter()
	r.Enforced(metav1.ConditionTrue, "Reached", "the API server asks")
	r.Enforced(metav1.ConditionFalse, "NotReached", "connection refused")
	r.Enforced(metav1.ConditionUnknown, "NotTried", "")
	on := "ValidatingWebhookConfiguration/" + policies.WebhookConfigurations
	expect(t, "enforced", own, "Normal Enforced "+on+" : the API server asks", "Warning NotEnforced "+on+" : NotReached: connection refused")
	r.CollectorSilent(web, true, "silent")
	r.CollectorSilent(web, false, "works")
	expect(t, "the built-in collector", own, "Warning BuiltinCollectorSilent Pod/web shop: silent", "Normal BuiltinCollectorWorks Pod/web shop: works")
	r.NamespaceControllerSilent(web, true, "silent")
	r.NamespaceControllerSilent(web, false, "works")
	expect(t, "the built-in namespace controller", own, "Warning NamespaceControllerSilent Pod/web shop: silent", "Normal NamespaceControllerWorks Pod/web shop: works")
	r.CollectionHeld("pods", "h", true, "holds 3")
	r.CollectionHeld("pods", "h", false, "decided")
	expect(t, "a HeldCollection", own, "Warning CollectionHeld HeldCollection/pods : holds 3", "Normal Decision HeldCollection/pods : decided")
}

func TestACascadeIsToldOnItsRootWhereThatIs(t *testing.T) {
	r, own, _ := newReporter()
	root := graph.Claim{APIVersion: "v1", Kind: "Team", Name: "a", Namespace: "shop", UID: "t", Namespaced: true}
	r.Cascade(root, "collected 2", `[{"name": "x"}]`)
	root.Namespaced = false // its dependents are in a namespace, and it is in none
	r.Cascade(root, "collected 2", "")
	expect(t, "cascades", own, "Normal "+ReasonCascade+" Team/a shop: collected 2", "Normal "+ReasonCascade+" Team/a : collected 2")
}

func TestWhatMayBeLeftBehindIsToldOnce(t *testing.T) {
	r, own, _ := newReporter()
	r.LeftBehind(web)
	r.LeftBehind(web)
	expect(t, "left behind", own, `Warning LeftBehind Pod/web shop: created before its namespace: perhaps left behind by an earlier namespace "shop". It is kept, because that is not certain`)
}

// Memory of what was said is bounded: then it may be said once more, and is not kept to itself.
func TestWhatWasSaidIsForgottenWhenThereIsTooMuchOfIt(t *testing.T) {
	r, own, _ := newReporter()
	r.OnHold(web, "waits")
	for i := range mostReported {
		r.reported[topic{reason: fmt.Sprint(i)}] = "x"
	}
	r.OnHold(graph.Ref{Kind: web.Kind, Name: "other", UID: "2"}, "waits")
	r.OnHold(web, "waits")
	if len(own.lines) != 3 || len(r.reported) != 2 {
		t.Errorf("said %d times, and remembers %d", len(own.lines), len(r.reported))
	}
}
