package controller

import (
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"

	"github.com/weir-dev/weir/controller/graph"
)

// Reasons of the Events that users see. The first is the reference's own (RB 2.19).
const (
	ReasonInvalidNamespace = "OwnerRefInvalidNamespace"
	ReasonUnresolvable     = "OwnerRefUnresolvable"
	ReasonRefused          = "CollectionRefused"
	ReasonHeld             = "DeletionHeld"
	ReasonWaveBlocked      = "WaveBlocked"
)

// failuresBeforeEvent is how often a request must fail for reasons that may pass before it is shown.
const failuresBeforeEvent = 5

// reporter tells users what they need to know about an object, on the object: once, not each time.
type reporter struct {
	// events come from Weir; asReference are those that tools know from the reference.
	events, asReference record.EventRecorder
	kindOf              func(schema.GroupResource) schema.GroupVersionKind

	mu   sync.Mutex
	told map[topic]string // what was last said
}

// topic is an object and the reason of an Event on it: each reason has its own last word.
type topic struct {
	uid    types.UID
	reason string
}

func newReporter(events, asReference record.EventRecorder, kindOf func(schema.GroupResource) schema.GroupVersionKind) *reporter {
	return &reporter{events: events, asReference: asReference, kindOf: kindOf, told: map[topic]string{}}
}

// decided says what is wrong with the references of an object, if anything is.
func (r *reporter) decided(a graph.Action) {
	if s := a.Stray; s != nil && r.first(a.Object.UID, ReasonInvalidNamespace, s.Name) {
		r.asReference.Eventf(r.object(a.Object), corev1.EventTypeWarning, ReasonInvalidNamespace,
			"ownerRef [%s/%s, namespace: %s, name: %s, uid: %s] does not exist in namespace %q",
			s.APIVersion, s.Kind, a.Object.Namespace, s.Name, s.UID, a.Object.Namespace)
	}
	if a.Trouble != graph.NoTrouble && r.first(a.Object.UID, ReasonUnresolvable, a.Why) {
		r.events.Event(r.object(a.Object), corev1.EventTypeWarning, ReasonUnresolvable, a.Why)
	}
}

// refused says that an object should go, or change, and who is against it.
func (r *reporter) refused(a graph.Action, o outcome, err error, tries int) {
	if o == failed && tries < failuresBeforeEvent {
		return
	}
	text := fmt.Sprintf("cannot %s (%s): %v", a.Verb, a.Why, err)
	if r.first(a.Object.UID, ReasonRefused, text) {
		r.events.Event(r.object(a.Object), corev1.EventTypeWarning, ReasonRefused, text)
	}
}

// succeeded forgets what was said.
func (r *reporter) succeeded(a graph.Action) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, reason := range []string{ReasonInvalidNamespace, ReasonUnresolvable, ReasonRefused} {
		delete(r.told, topic{a.Object.UID, reason})
	}
}

// blocked says on a namespace that its draining does not go on, and what it waits for.
func (r *reporter) blocked(namespace graph.Ref, why string) {
	if r.first(namespace.UID, ReasonWaveBlocked, why) {
		r.events.Event(r.object(namespace), corev1.EventTypeWarning, ReasonWaveBlocked, why)
	}
}

// mostTold bounds the memory of what was said. Past it everything may be said once more.
const mostTold = 100_000

func (r *reporter) first(uid types.UID, reason, text string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	about := topic{uid, reason}
	if r.told[about] == text {
		return false
	}
	if len(r.told) >= mostTold {
		clear(r.told)
	}
	r.told[about] = text
	return true
}

func (r *reporter) object(ref graph.Ref) *corev1.ObjectReference {
	gvk := r.kindOf(ref.Kind)
	return &corev1.ObjectReference{
		APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind,
		Namespace: ref.Namespace, Name: ref.Name, UID: ref.UID, ResourceVersion: ref.ResourceVersion,
	}
}
