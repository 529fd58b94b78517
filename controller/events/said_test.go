package events

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/kinds"
	"github.com/weir-dev/weir/controller/request"
	"github.com/weir-dev/weir/policies"
	"github.com/weir-dev/weir/policies/v1beta1"
)

// said records Events in one line each, with what they are on.
type said struct {
	lines       []string
	on          []corev1.ObjectReference
	annotations []map[string]string // of those that have some
}

func (s *said) Event(on runtime.Object, level, reason, message string) {
	o := on.(*corev1.ObjectReference)
	s.on = append(s.on, *o)
	s.lines = append(s.lines, fmt.Sprintf("%s %s %s/%s %s: %s", level, reason, o.Kind, o.Name, o.Namespace, message))
}

func (s *said) Eventf(on runtime.Object, level, reason, format string, args ...any) {
	s.Event(on, level, reason, fmt.Sprintf(format, args...))
}

func (s *said) AnnotatedEventf(
	on runtime.Object, annotations map[string]string, level, reason, format string, args ...any,
) {
	s.annotations = append(s.annotations, annotations)
	s.Eventf(on, level, reason, format, args...)
}

func newReporter() (r *Reporter, own *said) {
	own = &said{}
	return New(own, func(gr schema.GroupResource) schema.GroupVersionKind {
		return map[schema.GroupResource]schema.GroupVersionKind{
			web.Kind:         {Version: "v1", Kind: "Pod"},
			kinds.Namespaces: {Version: "v1", Kind: "Namespace"},
			held.Kind:        v1beta1.GroupVersion.WithKind("HeldCollection"),
			webhooks:         {Group: webhooks.Group, Version: "v1", Kind: "ValidatingWebhookConfiguration"},
		}[gr]
	}), own
}

var held = graph.Ref{Kind: v1beta1.GroupVersion.WithResource("heldcollections").GroupResource(), Name: "pods", UID: "h"}

var web = graph.Ref{Kind: schema.GroupResource{Resource: "pods"}, Namespace: "shop", Name: "web", UID: "u"}

// Where the namespace is gone, the API server takes no Event either, and a rejected one fills the
// log.
func TestNoEventGoesIntoANamespaceThatIsGone(t *testing.T) {
	r, own := newReporter()
	gone := apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, web.Namespace)
	r.Refused(graph.Action{Verb: graph.Delete, Object: web}, request.OutcomeAbout(web, gone), gone, 1)
	expect(t, "a namespace that is gone", own)
}

func expect(t *testing.T, what string, got *said, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, got.lines); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
	got.lines, got.on = nil, nil
}

// Tools know the reference's Event by its reason and its words.
func TestAnOwnerInAnotherNamespaceIsToldInTheReferencesWordsAndOnce(t *testing.T) {
	r, own := newReporter()
	a := graph.Action{Object: web, Mismatched: &metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet",
		Name: "web-1", UID: "o"}}
	r.Decided(a)
	r.Decided(a)
	expect(t, "another namespace", own, `Warning OwnerRefInvalidNamespace Pod/web shop: ownerRef [apps/v1/ReplicaSet, namespace: shop, name: web-1, uid: o] does not exist in namespace "shop"`)
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
		r, own := newReporter()
		r.Refused(a, c.outcome, errors.New("no"), c.tries)
		if reported := len(own.lines) == 1; reported != c.reported {
			t.Errorf("%s: told: %t: %q", name, reported, own.lines)
		}
	}
	r, own := newReporter()
	r.Refused(a, request.Refused, errors.New("no"), 1)
	r.Refused(a, request.Refused, errors.New("no"), 2)
	expect(t, "the same", own, "Warning CollectionRefused Pod/web shop: cannot delete it (its owner is gone): no")
	r.Refused(a, request.Refused, errors.New("not now"), 3)
	expect(t, "another", own, "Warning CollectionRefused Pod/web shop: cannot delete it (its owner is gone): not now")
	r.Succeeded(a)
	r.Refused(a, request.Refused, errors.New("not now"), 1)
	expect(t, "after success", own,
		"Warning CollectionRefused Pod/web shop: cannot delete it (its owner is gone): not now")
}

// What is refused is told in words, and not as the verbs are counted by.
func TestRefusalsAreToldInWords(t *testing.T) {
	for verb, want := range map[graph.Verb]string{
		graph.Delete: "delete it", graph.Release: "remove owner references from it",
		graph.Unblock: "keep it from blocking its owners", graph.Unfinalize: "remove the finalizer orphan from it",
	} {
		r, own := newReporter()
		r.Refused(graph.Action{Verb: verb, Object: web, Finalizer: "orphan", Why: "why"}, request.Refused,
			errors.New("no"), 1)
		expect(t, verb.String(), own, "Warning CollectionRefused Pod/web shop: cannot "+want+" (why): no")
	}
}

// What is well is Normal, and what is not known is not told.
func TestTheLevelOfAnEventSaysWhetherThereIsSomethingToDo(t *testing.T) {
	r, own := newReporter()
	r.Enforced(metav1.ConditionTrue, "Reached", "the API server asks")
	r.Enforced(metav1.ConditionFalse, "NotReached", "connection refused")
	r.Enforced(metav1.ConditionUnknown, "NotTried", "")
	on := "ValidatingWebhookConfiguration/" + policies.WebhookConfigurations
	expect(t, "enforced", own, "Normal Enforced "+on+" : the API server asks",
		"Warning NotEnforced "+on+" : NotReached: connection refused")
	r.Warn(web, ReasonCollectorSilent, "silent")
	r.Tell(web, ReasonCollectorWorks, "works")
	expect(t, "the built-in collector", own, "Warning BuiltinCollectorSilent Pod/web shop: silent",
		"Normal BuiltinCollectorWorks Pod/web shop: works")
	r.Warn(held, ReasonCollectionHeld, "holds 3")
	r.Tell(held, ReasonDecision, "decided")
	expect(t, "a HeldCollection", own, "Warning CollectionHeld HeldCollection/pods : holds 3",
		"Normal Decision HeldCollection/pods : decided")
}

func TestACascadeIsToldOnItsRootWhereThatIs(t *testing.T) {
	r, own := newReporter()
	root := graph.Claim{APIVersion: "v1", Kind: "Team", Name: "a", Namespace: "shop", UID: "t", Namespaced: true}
	r.Cascade(root, "collected 2", `[{"name": "x"}]`)
	root.Namespaced = false // its dependents are in a namespace, and it is in none
	r.Cascade(root, "collected 2", "")
	expect(t, "cascades", own, "Normal "+ReasonCascade+" Team/a shop: collected 2",
		"Normal "+ReasonCascade+" Team/a : collected 2")
	want := []map[string]string{{v1beta1.CollectedAnnotation: `[{"name": "x"}]`}} // none on an Event that names nothing
	if diff := cmp.Diff(want, own.annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
}

// Memory of what was said is bounded: then it may be said once more, and is not kept to itself.
func TestWhatWasSaidIsForgottenWhenThereIsTooMuchOfIt(t *testing.T) {
	r, own := newReporter()
	r.Once(web, ReasonHeld, "waits")
	for i := range mostReported - 1 { // it is full then
		r.reported[topic{reason: fmt.Sprint(i)}] = 1
	}
	r.Once(graph.Ref{Kind: web.Kind, Name: "other", UID: "2"}, ReasonHeld, "waits")
	r.Once(web, ReasonHeld, "waits")
	if len(own.lines) != 3 || len(r.reported) != 2 {
		t.Errorf("said %d times, and remembers %d", len(own.lines), len(r.reported))
	}
}

// kubectl describe finds the Events of an object by its uid, and lists them by namespace.
func TestAnEventIsOnTheObjectThatItIsAbout(t *testing.T) {
	pod := graph.Ref{Kind: schema.GroupResource{Resource: "pods"}, Namespace: "shop", Name: "web", UID: "u",
		ResourceVersion: "7"}
	onPod := corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: "shop", Name: "web", UID: "u",
		ResourceVersion: "7"}
	// in the version in which it was, whatever is served now
	policy := map[string]any{"apiVersion": "weir.dev/v1beta1", "kind": "DrainPolicy",
		"metadata": map[string]any{"name": "a", "uid": "p"}}
	for name, c := range map[string]struct {
		say  func(*Reporter)
		want string
		on   corev1.ObjectReference
	}{
		"an owner that cannot be resolved": {func(r *Reporter) {
			r.Decided(graph.Action{Object: pod, Unresolvable: graph.UnservedKind, Why: "Team a is not served"})
		}, "Warning OwnerRefUnresolvable Pod/web shop: Team a is not served", onPod},
		"a hold": {func(r *Reporter) {
			r.Once(pod, ReasonHeld, "waits")
		}, "Warning DeletionHeld Pod/web shop: waits", onPod},
		"another collector": {func(r *Reporter) {
			r.Warn(pod, ReasonOtherCollector, "both")
		}, "Warning OtherCollector Pod/web shop: both", onPod},
		"a namespace that is drained": {func(r *Reporter) { r.Tell(pod, ReasonCascade, "deleted 3") },
			"Normal " + ReasonCascade + " Pod/web shop: deleted 3", onPod},
		"a policy": {func(r *Reporter) {
			r.Policy(policy, corev1.EventTypeNormal, "Fine", "it is")
		}, "Normal Fine DrainPolicy/a : it is",
			corev1.ObjectReference{APIVersion: "weir.dev/v1beta1", Kind: "DrainPolicy", Name: "a", UID: "p"}},
		"a held collection": {func(r *Reporter) {
			r.Warn(held, ReasonCollectionHeld, "holds 3")
		}, "Warning CollectionHeld HeldCollection/pods : holds 3",
			corev1.ObjectReference{APIVersion: "weir.dev/v1beta1", Kind: "HeldCollection", Name: "pods", UID: "h"}},
		"a history that went back": {func(r *Reporter) { r.Rewound("9 came after 12") },
			"Warning HistoryRewound Namespace/kube-system : the API server's history went back, as after a restore from a " +
				"backup (9 came after 12): " +
				"everything is listed again, and nothing is deleted until that is done",
			corev1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Name: "kube-system"}},
	} {
		r, own := newReporter()
		c.say(r)
		if diff := cmp.Diff([]corev1.ObjectReference{c.on}, own.on); diff != "" {
			t.Errorf("%s: on another object (-want +got):\n%s", name, diff)
		}
		expect(t, name, own, c.want)
	}
}

// What is right needs no Event, and what is wrong needs one, until it is put right or is wrong in
// another way.
func TestReferencesAreToldWhileTheyAreWrong(t *testing.T) {
	r, own := newReporter()
	r.Decided(graph.Action{Object: web, Verb: graph.Wait, Why: "its owner is there"})
	expect(t, "nothing is wrong", own)
	wrong := graph.Action{Object: web, Unresolvable: graph.UnservedKind, Why: "Team a is not served"}
	r.Decided(wrong)
	r.Decided(wrong)
	expect(t, "an owner of an unserved kind", own, "Warning OwnerRefUnresolvable Pod/web shop: Team a is not served")
	wrong.Why = "Team a cannot be read"
	r.Decided(wrong)
	expect(t, "unreadable by now", own, "Warning OwnerRefUnresolvable Pod/web shop: Team a cannot be read")
	r.Succeeded(wrong)
	r.Decided(wrong)
	expect(t, "wrong again", own, "Warning OwnerRefUnresolvable Pod/web shop: Team a cannot be read")
}

// A deletion may wait for unseen kinds and for a policy in turns: each has its own last word, or
// both would be said without end.
func TestTwoReasonsToWaitAreEachToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, own := newReporter()
		unseen := graph.Action{Object: web, Why: "pods are not all seen"}
		r.Held(unseen)
		<-time.After(heldAfter)
		for range 3 {
			r.Once(web, ReasonHeld, "a policy holds it")
			r.Held(unseen)
		}
		expect(t, "in turns", own, "Warning DeletionHeld Pod/web shop: a policy holds it",
			"Warning DeletionHeld Pod/web shop: pods are not all seen")
		r.Succeeded(unseen)
		r.Once(web, ReasonHeld, "a policy holds it")
		expect(t, "the collector's success is no news of the policy", own)
	})
}

// Past the bound each deletion that waits begins to wait again: its Event comes later, and does not
// fail to come.
func TestWhatWaitsIsForgottenWhenThereIsTooMuchOfIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, own := newReporter()
		for i := range mostReported {
			r.waits[types.UID(fmt.Sprint(i))] = time.Now()
		}
		<-time.After(heldAfter)
		a := graph.Action{Object: web, Why: "pods are not all seen"}
		if said, again := r.Held(a); said || again != heldAfter || len(r.waits) != 1 {
			t.Errorf("said: %t, again after %s, %d are waited for", said, again, len(r.waits))
		}
		<-time.After(heldAfter)
		if said, _ := r.Held(a); !said || len(own.lines) != 1 {
			t.Errorf("said: %t: %q", said, own.lines)
		}
	})
}

// Workers and drainers report about the same object at once.
func TestOneOfManyReportersSaysIt(t *testing.T) {
	events := record.NewFakeRecorder(100)
	r := New(events, func(schema.GroupResource) schema.GroupVersionKind { return schema.GroupVersionKind{} })
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() { r.Once(web, ReasonHeld, "waits") })
	}
	all.Wait()
	if len(events.Events) != 1 {
		t.Errorf("said %d times", len(events.Events))
	}
}
