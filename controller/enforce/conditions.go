package enforce

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/controller/follow"
	"github.com/weir-dev/weir/policies"
	"github.com/weir-dev/weir/policies/v1beta1"
)

// reach is what a condition of policies says, above all Enforced: whether the API server calls
// Weir's webhook and gets an answer.
type reach struct {
	status          metav1.ConditionStatus // empty: it was not tried, or need not be
	reason, message string
}

// drainsOf returns the condition Enforced of DrainPolicies; nothing if another namespace controller
// deletes, and only the webhook refuses deletes of later waves. If Weir empties namespaces itself
// that is said, and not left out: a client that waits for Enforced need not know the mode, and a
// webhook that is not reached does no harm to waves there.
func drainsOf(o Options) reach {
	switch {
	case !o.Drains:
		return reach{metav1.ConditionFalse, v1beta1.ReasonNotDrained, saysNotDrained}
	case o.Collects:
		return reach{metav1.ConditionTrue, v1beta1.ReasonDrained, saysDrained}
	}
	return reach{}
}

// How the API server's messages about the canary's webhook begin.
const (
	canaryDenied = `admission webhook "` + string(policies.WebhookCanary) + `" denied the request: `
	canaryFailed = `failed calling webhook "` + string(policies.WebhookCanary) + `": `
)

// What each reason means, and what to look at. The API server's own words follow.
const (
	saysReached    = "the API server asks weir's webhook, and is answered"
	saysNotReached = "the API server does not reach weir's webhook, or gets no answer that it takes, and Weir judges " +
		"nothing: see that it runs and is ready, that neither a firewall nor a NetworkPolicy is between, and that the " +
		"CA in the webhook configurations has signed its certificate: "
	saysNotAsked = "the API server does not ask weir's webhook though it is told to, and Weir judges nothing: see " +
		"that its admission plugin ValidatingAdmissionWebhook is on, and wait until the API server has read the webhook " +
		"configurations"
	saysDrained    = "weir empties namespaces itself, wave by wave"
	saysNotDrained = "weir drains no namespaces, so waves are not enforced: --drain-namespaces is off"
	saysNotTried   = "whether the API server asks weir's webhook cannot be tried: "
)

// reachOf returns what the result of a dry-run delete shows that should be refused with an answer.
func reachOf(err error, answer string) reach {
	if err == nil {
		return reach{metav1.ConditionFalse, v1beta1.ReasonNotAsked, saysNotAsked}
	}
	text := plainly(err.Error())
	if _, said, ok := strings.Cut(text, canaryDenied); ok {
		if said == answer {
			return reach{metav1.ConditionTrue, v1beta1.ReasonReached, saysReached}
		}
		return reach{metav1.ConditionFalse, v1beta1.ReasonNotReached, saysNotReached + "it does not give weir's answer: " +
			said}
	}
	if _, why, ok := strings.Cut(text, canaryFailed); ok {
		return reach{metav1.ConditionFalse, v1beta1.ReasonNotReached, saysNotReached + why}
	}
	return reach{metav1.ConditionUnknown, v1beta1.ReasonNotTried, saysNotTried + text}
}

// These parts of errors are removed: the path, which begins with a token that only the API server
// is told, and ports and times, which differ each time.
var (
	pathOfURL   = regexp.MustCompile(`(https?://[^/"\s]+)/[^"\s]*`)
	ownAddress  = regexp.MustCompile(`\b(read|write) (tcp\d?) \S+->`)
	currentTime = regexp.MustCompile(`current time \S+ `)
)

// mostWords is how much of an error is shown, in bytes.
const mostWords = 1024

// plainly returns the text of an error so that all users may read it, and the same text each time.
func plainly(text string) string {
	text = pathOfURL.ReplaceAllString(text, "$1")
	text = ownAddress.ReplaceAllString(text, "$1 $2 ")
	text = currentTime.ReplaceAllString(text, "the current time ")
	return strings.ToValidUTF8(text[:min(len(text), mostWords)], "")
}

// served holds the resources that discovery found, each also with the group '*', and the groups
// that did not answer, with the resource '*'; nil before anything is known.
type served map[schema.GroupResource]bool

func servedNow(s *follow.Store, undiscovered []string) served {
	out := served{}
	for _, k := range s.Stats().Kinds {
		if k.Served {
			out[k.GroupResource()] = true
			out[schema.GroupResource{Group: "*", Resource: k.GroupResource().Resource}] = true
		}
	}
	if len(out) == 0 {
		return nil
	}
	for _, gv := range undiscovered {
		group, _, _ := strings.Cut(gv, "/")
		out[schema.GroupResource{Group: group, Resource: "*"}] = true
		out[schema.GroupResource{Group: "*", Resource: "*"}] = true
	}
	return out
}

// mostNamed is how many resources a condition names.
const mostNamed = 5

// resolved returns the condition Resolved, if anything is known. What an API may serve that does
// not answer is not said to be missing.
func (v served) resolved(names []policies.Name) reach {
	if v == nil {
		return reach{}
	}
	var missing []string
	for _, n := range names {
		if !slices.ContainsFunc(n.Groups, func(g string) bool {
			return v[schema.GroupResource{Group: g, Resource: n.Resource}] || v[schema.GroupResource{Group: g, Resource: "*"}]
		}) {
			missing = append(missing, fmt.Sprintf("%s (%s)", n.Field,
				schema.GroupResource{Group: n.Groups[0], Resource: n.Resource}))
		}
	}
	if len(missing) > 0 {
		return reach{metav1.ConditionFalse, v1beta1.ReasonNotServed, "no API serves " + some(missing) + ": names are " +
			"plurals, as kubectl api-resources shows them; if a CustomResourceDefinition is yet to come, the policy holds " +
			"when it is there"}
	}
	return reach{metav1.ConditionTrue, v1beta1.ReasonServed, "every resource that the policy names is served"}
}

func some(list []string) string {
	if len(list) > mostNamed {
		return strings.Join(list[:mostNamed], ", ") + fmt.Sprintf(" and %d more", len(list)-mostNamed)
	}
	return strings.Join(list, ", ")
}
