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

// Request is what has to be asked of the API server before an object can go.
type Request string

// The requests.
const (
	Delete     Request = "delete"
	Unfinalize Request = "removeFinalizers"
)

// Trial is a request of that kind. The API server can be asked to try it without effect (dry run),
// which finds what no metadata tells: admission and conversion webhooks, policies, and objects that
// are not valid any more.
type Trial struct {
	Object
	Request Request `json:"request"`
	// Accepted, or refused with a message; neither if it was not tried, or nothing can be told from
	// it: the message says why then.
	Accepted bool   `json:"accepted,omitempty"`
	Refused  bool   `json:"refused,omitempty"`
	Message  string `json:"message,omitempty"`

	// As is the user as whom it is tried, where that is not who asks: what that user may not do is
	// refused, too.
	As string `json:"as,omitempty"`

	Resource schema.GroupVersionResource `json:"-"`
}

// mostTrials bounds what is tried for one object.
const mostTrials = 10

// Trials are the requests that have to be accepted before an object can go: about itself, about
// what it waits for as a foreground owner, and about one object of each kind in a namespace, or of
// a definition.
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

// holdsUp are the objects that have to go before a terminating one can, as far as they are tried.
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
				out = append(out, some[one]) // no client could delete it yet
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

// Answered says how the API server answered: as it says why it refuses, and its message. Of a
// request that was accepted that is "", and of one that was not answered NoAnswer.
func (t *Trial) Answered(reason metav1.StatusReason, message string) {
	message = words.Printable(message)
	t.Message = message
	switch {
	case reason == "" && message == "":
		t.Accepted = true
	case noDryRun.MatchString(message):
		t.Message = "cannot be tried: " + message
	case deniedBy.MatchString(message):
		t.Refused = true // for a reason that is the webhook's choice, and says nothing about the object
	case reason == metav1.StatusReasonNotFound && t.Namespace != "" && noNamespace.MatchString(message):
		t.Refused = true
	case reason == metav1.StatusReasonNotFound || reason == metav1.StatusReasonConflict:
		t.Message = "it has changed meanwhile, or is gone: ask again"
	case t.As != "" && strings.Contains(message, fmt.Sprintf("User %q cannot ", t.As)):
		t.Refused = true
	case reason == metav1.StatusReasonUnauthorized || reason == metav1.StatusReasonForbidden && mayNot.MatchString(message):
		t.Message = "not permitted, so not tried: " + message
	case reason == NoAnswer || reason == metav1.StatusReasonTooManyRequests:
		t.Message = "not answered: " + message
	default:
		t.Refused = true
	}
}

// NoAnswer is the reason of a request that the API server did not answer.
const NoAnswer metav1.StatusReason = "NoAnswer"

// whoMakesNamespaces has to act where the namespace of an object is gone.
const whoMakesNamespaces = "whoever may create namespaces: kubectl create namespace %s lets the deletion go on"

// unnamed is who has to act where a message does not say who refuses.
const unnamed = "not known: the message does not say who refuses"

// refuser is who is behind a message of the API server about objects of a kind, and a command that
// shows more; empty if the message names no user.
func refuser(kind, message string) (actor, look string) {
	for _, by := range []struct {
		says        *regexp.Regexp
		actor, look string
	}{
		{deniedBy, "whoever runs the admission webhook %s", "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations -o wide"},
		{unanswering, "whoever runs the admission webhook %s, which does not answer", "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations -o wide"},
		{policyDenied, "whoever wrote the ValidatingAdmissionPolicy %s", "kubectl get validatingadmissionpolicies,validatingadmissionpolicybindings"},
		{invalid, "whoever makes %s valid again: its writer, or whoever writes the schema of its kind", ""},
		{conversion, "whoever runs the conversion webhook of %s", "kubectl get crd " + kind + " -o jsonpath='{.spec.conversion}'"},
		{noNamespace, whoMakesNamespaces, ""},
		{mayNot, "whoever grants the user %s its rights (RBAC)", "kubectl get clusterrolebindings,rolebindings -A -o wide"},
	} {
		if m := by.says.FindStringSubmatch(message); m != nil {
			return fmt.Sprintf(by.actor, m[1]), by.look
		}
	}
	return "", ""
}

// Cause is why an object does not go if a request is refused; false if it is not.
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

// words say what the request asks for.
func (t *Trial) words() string {
	if t.Request == Delete {
		return "to delete " + t.String()
	}
	return "to remove the finalizers of " + t.String()
}

// told says in a line how a trial ended.
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
