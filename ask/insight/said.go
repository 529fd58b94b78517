package insight

import (
	"cmp"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/weir-dev/weir/controller/words"
	"github.com/weir-dev/weir/policies/v1beta1"
)

// refusal is who refuses or holds a request of a controller about an object, a command that shows
// more, and how that is known; empty if another evidence says so.
type refusal struct{ actor, look, evidence string }

// cause returns a cause with who refuses as the actor.
func (by refusal) cause() Cause {
	c := Cause{Actor: by.actor, Look: by.look, refused: by}
	if by.evidence != "" {
		c.Evidence = []string{by.evidence}
	}
	return c
}

// Heard records Events that a request of Weir's controller is refused, or waits for a person: then
// these have to act, and not the controller. Of several Events about an object the last counts.
// They are evidence only, because others can write Events as Weir.
func (w *World) Heard(events []corev1.Event, now time.Time) {
	last := map[types.UID]time.Time{}
	for i := range events {
		e := &events[i]
		on, at, held := &e.InvolvedObject, e.LastTimestamp.Time, e.Reason == v1beta1.ReasonDeletionHeld
		if e.Source.Component != component || !held && e.Reason != v1beta1.ReasonCollectionRefused ||
			at.Before(last[on.UID]) {
			continue
		}
		last[on.UID] = at
		message := words.Printable(e.Message)
		by := refusal{actor: "a person who decides", look: "kubectl weir held"}
		if !held {
			actor, look := refuser("", message)
			by = refusal{actor: cmp.Or(actor, unnamed), look: look}
		}
		by.evidence = fmt.Sprintf("the Event %s on %s, %s ago: %s", e.Reason,
			named(on.Kind, on.Namespace, on.Name), duration.HumanDuration(max(0, now.Sub(at))), message)
		w.refused[on.UID] = by
	}
}

// HeardOf records refusals from the conditions of a whole namespace, which say why its content
// could not be deleted.
func (w *World) HeardOf(namespace *unstructured.Unstructured) {
	for _, text := range failures(namespace) {
		if actor, look := refuser("", text); actor != "" {
			w.refused[namespace.GetUID()] = refusal{actor: actor, look: look}
		}
	}
}

// acting returns a cause whose actor is usual, a controller, or who refuses its request for the
// object.
func (w *World) acting(uid types.UID, usual string) Cause {
	if by, ok := w.refused[uid]; ok {
		return by.cause()
	}
	return Cause{Actor: usual}
}

// named names an object by its kind, as owner references and Events do.
func named(kind, namespace, name string) string {
	if namespace != "" {
		name = namespace + "/" + name
	}
	return words.Printable(kind + " " + name)
}
