package events

import (
	"fmt"
	"hash/maphash"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/kinds"
	"github.com/weir-dev/weir/controller/request"
	"github.com/weir-dev/weir/controller/words"
	"github.com/weir-dev/weir/policies"
	"github.com/weir-dev/weir/policies/v1beta1"
)

// The reasons of Events. The first is the reference's own (RB 2.19).
const (
	ReasonInvalidNamespace = "OwnerRefInvalidNamespace"
	ReasonUnresolvable     = "OwnerRefUnresolvable"
	ReasonRefused          = v1beta1.ReasonCollectionRefused
	ReasonHeld             = v1beta1.ReasonDeletionHeld
	ReasonWaveBlocked      = "WaveBlocked"
	ReasonNotRecorded      = "NotRecorded"
	ReasonTreePurged       = "TreePurged"
	ReasonHistoryRewound   = "HistoryRewound"
	ReasonEnforced         = "Enforced"
	ReasonNotEnforced      = "NotEnforced"
	ReasonKept             = v1beta1.ReasonKept
	ReasonCascade          = v1beta1.ReasonCascade
	ReasonOtherCollector   = "OtherCollector"
	ReasonPolicyError      = v1beta1.ReasonPolicyError

	ReasonCollectionHeld = "CollectionHeld"
	ReasonDecision       = "Decision"

	ReasonCollectorSilent = "BuiltinCollectorSilent"
	ReasonCollectorWorks  = "BuiltinCollectorWorks"
)

// failuresBeforeEvent is how often a request must fail for reasons that may pass before an Event
// says so.
const failuresBeforeEvent = 5

// Reporter tells users what they need to know about an object, on the object: once, not each time.
type Reporter struct {
	events record.EventRecorder
	kindOf func(schema.GroupResource) schema.GroupVersionKind

	mu       sync.Mutex
	reported map[topic]uint64 // the hash of the last text, which may be long
	seed     maphash.Seed
	// waits holds since when the deletion of an object waits for kinds that are not complete.
	waits map[types.UID]time.Time
}

// heldAfter is how long a deletion waits for incomplete kinds before an Event says so: most broken
// watches are taken up again before.
const heldAfter = 5 * time.Second

// heldUnseen is the topic of these Events: what others say by ReasonHeld has a last text of its own.
const heldUnseen = ReasonHeld + "/unseen"

// topic is an object and the reason of an Event on it. Each has a last text of its own.
type topic struct {
	uid    types.UID
	reason string
}

// New returns a Reporter.
func New(events record.EventRecorder, kindOf func(schema.GroupResource) schema.GroupVersionKind) *Reporter {
	return &Reporter{
		events: events, kindOf: kindOf,
		reported: map[topic]uint64{}, seed: maphash.MakeSeed(), waits: map[types.UID]time.Time{},
	}
}

// Decided says what is wrong with the references of an object, if anything is.
func (r *Reporter) Decided(a graph.Action) {
	if s := a.Mismatched; s != nil && r.first(a.Object.UID, ReasonInvalidNamespace, s.Name) {
		text := fmt.Sprintf("ownerRef [%s/%s, namespace: %s, name: %s, uid: %s] does not exist in namespace %q",
			s.APIVersion, s.Kind, a.Object.Namespace, s.Name, s.UID, a.Object.Namespace)
		r.Warn(a.Object, ReasonInvalidNamespace, text)
	}
	if a.Unresolvable != graph.Resolvable {
		r.Once(a.Object, ReasonUnresolvable, a.Why)
	}
}

// Refused says that an object should be deleted or changed, and who refuses that.
func (r *Reporter) Refused(a graph.Action, o request.Outcome, err error, tries int) {
	if o == request.Failed && tries < failuresBeforeEvent || request.InNoNamespace(a.Object, err) {
		return
	}
	r.Once(a.Object, ReasonRefused, fmt.Sprintf("cannot %s (%s): %v", a.Words("it"), a.Why, err))
}

// Kept says why an object is kept, that it was released from its owners, and how to delete it.
func (r *Reporter) Kept(a graph.Action) {
	r.Warn(a.Object, ReasonKept, a.Why+". It is kept, and was released from its owners. To delete it, "+
		"delete the object itself, and confirm that where a policy asks for it")
}

// Succeeded forgets what was said about an object.
func (r *Reporter) Succeeded(a graph.Action) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.waits, a.Object.UID)
	for _, reason := range []string{ReasonInvalidNamespace, ReasonUnresolvable, ReasonRefused, heldUnseen} {
		delete(r.reported, topic{a.Object.UID, reason})
	}
}

// Held says that the deletion of an object waits for kinds that may hold unseen dependents, once it
// has for heldAfter. Before that it says nothing, and the caller is to ask again after a time.
func (r *Reporter) Held(a graph.Action) (said bool, again time.Duration) {
	r.mu.Lock()
	since, ok := r.waits[a.Object.UID]
	if !ok {
		if len(r.waits) >= mostReported {
			clear(r.waits)
		}
		since = time.Now()
		r.waits[a.Object.UID] = since
	}
	r.mu.Unlock()
	if left := heldAfter - time.Since(since); left > 0 {
		return false, left
	}
	if r.first(a.Object.UID, heldUnseen, a.Why) {
		r.Warn(a.Object, ReasonHeld, a.Why)
	}
	return true, 0
}

// Rewound says on the namespace kube-system, which stands for the cluster, that its history went
// back.
func (r *Reporter) Rewound(why string) {
	r.Warn(graph.Ref{Kind: kinds.Namespaces, Name: metav1.NamespaceSystem}, ReasonHistoryRewound,
		fmt.Sprintf("the API server's history went back, as after a restore from a backup (%s): "+
			"everything is listed again, and nothing is deleted until that is done", why))
}

// Enforced says on the webhook configuration whether the API server asks the webhook.
func (r *Reporter) Enforced(is metav1.ConditionStatus, reason, message string) {
	on := graph.Ref{Kind: webhooks, Name: policies.WebhookConfigurations}
	switch is {
	case metav1.ConditionTrue:
		r.Tell(on, ReasonEnforced, message)
	case metav1.ConditionFalse:
		r.Warn(on, ReasonNotEnforced, reason+": "+message)
	case metav1.ConditionUnknown:
	}
}

var webhooks = schema.GroupResource{Group: "admissionregistration.k8s.io", Resource: "validatingwebhookconfigurations"}

// Cascade says on an owner, which may be gone, what was collected because of it. collected names
// some of the objects, as JSON; it may be empty.
func (r *Reporter) Cascade(root graph.Claim, text, collected string) {
	on := &corev1.ObjectReference{APIVersion: root.APIVersion, Kind: root.Kind, Name: root.Name, UID: root.UID}
	if root.Namespaced {
		on.Namespace = root.Namespace
	}
	if collected == "" {
		r.send(on, corev1.EventTypeNormal, ReasonCascade, text)
		return
	}
	r.events.AnnotatedEventf(on, map[string]string{v1beta1.CollectedAnnotation: collected},
		corev1.EventTypeNormal, ReasonCascade, "%s", words.Cut(text, mostNote))
}

// Policy says something about a policy, on the policy.
func (r *Reporter) Policy(object map[string]any, eventType, reason, message string) {
	u := unstructured.Unstructured{Object: object}
	on := &corev1.ObjectReference{APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Name: u.GetName(), UID: u.GetUID()}
	r.send(on, eventType, reason, message)
}

// mostNote is the longest text of an Event, in bytes, which is the API server's limit for
// events.k8s.io. Texts contain what others choose, such as finalizers and answers of webhooks.
const mostNote = 1024

// send sends an Event.
func (r *Reporter) send(on *corev1.ObjectReference, level, reason, text string) {
	r.events.Event(on, level, reason, words.Cut(text, mostNote))
}

// Tell says something on an object that asks for nothing to be done.
func (r *Reporter) Tell(on graph.Ref, reason, text string) {
	r.send(r.object(on), corev1.EventTypeNormal, reason, text)
}

// Warn says something on an object, each time.
func (r *Reporter) Warn(on graph.Ref, reason, text string) {
	r.send(r.object(on), corev1.EventTypeWarning, reason, text)
}

// Once warns, unless the last text for the same reason was the same.
func (r *Reporter) Once(on graph.Ref, reason, text string) {
	if r.first(on.UID, reason, text) {
		r.Warn(on, reason, text)
	}
}

// mostReported bounds the remembered texts. Past it everything may be said once more.
const mostReported = 100_000

// first notes a text, and reports whether it differs from the last one for the same reason.
func (r *Reporter) first(uid types.UID, reason, text string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	about, hash := topic{uid, reason}, maphash.String(r.seed, words.Cut(text, mostNote))
	if was, said := r.reported[about]; said && was == hash {
		return false
	}
	if len(r.reported) >= mostReported {
		clear(r.reported)
	}
	r.reported[about] = hash
	return true
}

func (r *Reporter) object(ref graph.Ref) *corev1.ObjectReference {
	gvk := r.kindOf(ref.Kind)
	return &corev1.ObjectReference{
		APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind,
		Namespace: ref.Namespace, Name: ref.Name, UID: ref.UID, ResourceVersion: ref.ResourceVersion,
	}
}
