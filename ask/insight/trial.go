package insight

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/words"
)

// Request is a kind of request that the API server has to accept before an object can go.
type Request string

// The requests.
const (
	Delete     Request = "delete"
	Unfinalize Request = "removeFinalizers"
)

// Trial is a request for an object. A dry run of it finds what metadata does not tell: refusals by
// admission webhooks, conversion webhooks and policies, and objects that are not valid any more.
type Trial struct {
	Object
	Request Request `json:"request"`
	// Accepted, or Refused with a Message. If neither is set, the request was not tried, or the answer
	// tells nothing, and Message says why.
	Accepted bool   `json:"accepted,omitempty"`
	Refused  bool   `json:"refused,omitempty"`
	Message  string `json:"message,omitempty"`

	// As is the user that the request impersonates, if that is not the caller. What that user may not
	// do counts as refused.
	As string `json:"as,omitempty"`

	Resource schema.GroupVersionResource `json:"-"`
}

// mostTrials bounds the trials for one object.
const mostTrials = 10

// Trials returns the requests that have to be accepted before an object can go: those for the
// object itself, for what it waits for as a foreground owner, and for one object of each kind in a
// namespace, or one object of a definition.
func (w *World) Trials(uid types.UID) (out []Trial) {
	w.settle(uid)
	v, ok := w.Graph.Find(uid)
	if !ok {
		return nil
	}
	add := func(v graph.View, request Request) {
		k, served := w.kinds[v.Kind]
		if served && len(out) < mostTrials {
			out = append(out, Trial{Object: objectOf(&v), Request: request, Resource: v.Kind.WithVersion(k.Version)})
		}
	}
	if !v.Deleting {
		if w.Graph.Decide(uid).Verb == graph.Delete {
			add(v, Delete)
		}
		return out
	}
	if len(v.Finalizers) > 0 {
		add(v, Unfinalize)
	}
	for _, other := range w.holdsUp(&v) {
		switch {
		case !other.Deleting:
			add(other, Delete)
		case len(other.Finalizers) > 0:
			add(other, Unfinalize)
		}
	}
	return out
}

// holdsUp returns the objects to try of those that a terminating object waits for.
func (w *World) holdsUp(v *graph.View) (out []graph.View) {
	if v.Foreground {
		blockers := w.blockers(v.UID)
		for _, o := range blockers[:min(len(blockers), someNames)] {
			if b, ok := w.Graph.Find(o.UID); ok {
				out = append(out, b)
			}
		}
	}
	switch v.Kind {
	case namespaces:
		for _, k := range w.Graph.Inventory(v.Name).Kinds {
			some, _ := w.Graph.Content(v.Name, k.Kind, 0, 1000)
			if one := slices.IndexFunc(some, func(v graph.View) bool { return !v.Deleting }); one >= 0 {
				out = append(out, some[one]) // nobody has deleted it yet, so its delete may be refused
			} else if len(some) > 0 {
				out = append(out, some[0])
			}
		}
	case definitions:
		for o := range w.objects() {
			if o.Kind == schema.ParseGroupResource(v.Name) {
				return append(out, *o)
			}
		}
	}
	return out
}

// The API server names who refuses in its messages, and nowhere else.
var (
	deniedBy     = regexp.MustCompile(`admission webhook "([^"]+)" denied the request`)
	unanswering  = regexp.MustCompile(`failed calling webhook "([^"]+)"`)
	policyDenied = regexp.MustCompile(`ValidatingAdmissionPolicy '([^']+)'`)
	conversion   = regexp.MustCompile(`conversion webhook for (.+?) failed`)
	noDryRun     = regexp.MustCompile(`does not support dry run`)
	invalid      = regexp.MustCompile(`([\w.-]+ "[^"]*") is invalid: `)
	noNamespace  = regexp.MustCompile(`^namespaces "([^"]+)" not found$`)
	mayNot       = regexp.MustCompile(`User "([^"]*)" cannot \w+ resource`)
)

// Answered records an answer of the API server: the reason of a refusal and its message. The reason
// is empty for a request that was accepted, and NoAnswer for one that was not answered.
func (t *Trial) Answered(reason metav1.StatusReason, message string) {
	message = words.Printable(message)
	t.Message = message
	switch {
	case reason == "" && message == "":
		t.Accepted = true
	case noDryRun.MatchString(message):
		t.Message = "cannot be tried: " + message
	case deniedBy.MatchString(message):
		t.Refused = true // the reason is of the webhook's choice, and says nothing about the object
	case reason == metav1.StatusReasonNotFound && t.Namespace != "" && noNamespace.MatchString(message):
		t.Refused = true
	case reason == metav1.StatusReasonNotFound || reason == metav1.StatusReasonConflict:
		t.Message = "it has changed meanwhile, or is gone: ask again"
	case t.As != "" && strings.Contains(message, fmt.Sprintf("User %q cannot ", t.As)):
		t.Refused = true
	case reason == metav1.StatusReasonUnauthorized ||
		reason == metav1.StatusReasonForbidden && mayNot.MatchString(message):
		t.Message = "not permitted, so not tried: " + message
	case reason == NoAnswer || reason == metav1.StatusReasonTooManyRequests:
		t.Message = "not answered: " + message
	default:
		t.Refused = true
	}
}

// NoAnswer is the reason for a request that the API server did not answer.
const NoAnswer metav1.StatusReason = "NoAnswer"

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

// Cause returns the cause that a refused request is, or false.
func (t *Trial) Cause() (Cause, bool) {
	if !t.Refused {
		return Cause{}, false
	}
	c := Cause{
		What:     fmt.Sprintf("the API server refuses a request that has to succeed first, %s: %s", t.words(), t.Message),
		Actor:    unnamed,
		Evidence: []string{"this was a dry run by you; another user may get another answer"},
	}
	if actor, look := refuser(t.Kind, t.Message); actor != "" {
		c.Actor, c.Look = actor, look
	}
	return c, true
}

// words says what the request asks for.
func (t *Trial) words() string {
	if t.Request == Delete {
		return "to delete " + t.String()
	}
	return "to remove the finalizers of " + t.String()
}

// told says in one line how a trial ended.
func (t *Trial) told() string {
	how := t.Message
	switch {
	case t.Accepted:
		how = "accepted"
	case t.Refused:
		how = "refused"
	}
	return t.words() + ": " + how
}
