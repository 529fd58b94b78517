package insight

import (
	"cmp"
	"fmt"
	"regexp"
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

// The API server names who refuses in its messages, and nowhere else.
var (
	deniedBy     = regexp.MustCompile(`admission webhook "([^"]+)" denied the request`)
	unanswering  = regexp.MustCompile(`failed calling webhook "([^"]+)"`)
	policyDenied = regexp.MustCompile(`ValidatingAdmissionPolicy '([^']+)'`)
	conversion   = regexp.MustCompile(`conversion webhook for (.+?) failed`)
	invalid      = regexp.MustCompile(`([\w.-]+ "[^"]*") is invalid: `)
	noNamespace  = regexp.MustCompile(`^namespaces "([^"]+)" not found$`)
	mayNot       = regexp.MustCompile(`User "([^"]*)" cannot \w+ resource`)
)

// whoMakesNamespaces is the actor for an object whose namespace does not exist.
const whoMakesNamespaces = "whoever may create namespaces: kubectl create namespace %s lets the deletion go on"

// unnamed is the actor if a message does not name who refuses.
const unnamed = "not known: the message does not say who refuses"

// refuser returns who is behind a message of the API server about objects of a kind, and a command
// that shows more. Both are empty if the message names nobody.
func refuser(kind, message string) (actor, look string) {
	for _, by := range []struct {
		says        *regexp.Regexp
		actor, look string
	}{
		{deniedBy, "whoever runs the admission webhook %s",
			"kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations -o wide"},
		{unanswering, "whoever runs the admission webhook %s, which does not answer",
			"kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations -o wide"},
		{policyDenied, "whoever wrote the ValidatingAdmissionPolicy %s",
			"kubectl get validatingadmissionpolicies,validatingadmissionpolicybindings"},
		{invalid, "whoever makes %s valid again: its writer, or whoever writes the schema of its kind", ""},
		{conversion, "whoever runs the conversion webhook of %s",
			"kubectl get crd " + kind + " -o jsonpath='{.spec.conversion}'"},
		{noNamespace, whoMakesNamespaces, ""},
		{mayNot, "whoever grants the user %s its rights (RBAC)", "kubectl get clusterrolebindings,rolebindings -A -o wide"},
	} {
		if m := by.says.FindStringSubmatch(message); m != nil {
			return fmt.Sprintf(by.actor, m[1]), by.look
		}
	}
	return "", ""
}
