package enforce

import (
	"regexp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/policies"
	"github.com/weir-dev/weir/policies/v1beta1"
)

// reach is whether the API server calls Weir's webhook and gets an answer: the condition Enforced
// of policies.
type reach struct {
	status          metav1.ConditionStatus // empty: it was not tried, or need not be
	reason, message string
}

// orderer is what keeps the waves of DrainPolicies in order.
type orderer uint8

const (
	// byWebhook: another namespace controller deletes, and only the webhook refuses deletes of later
	// waves.
	byWebhook orderer = iota
	// byDrainer: Weir empties namespaces itself, and needs no webhook for that.
	byDrainer
	// byNone: no wave ever begins.
	byNone
)

// kept returns whether waves hold. If Weir empties namespaces itself that is said, and not left
// out: a client that waits for Enforced need not know the mode, and a webhook that is not reached
// does no harm to waves there.
func (o orderer) kept(asked reach) reach {
	switch o {
	case byDrainer:
		return reach{metav1.ConditionTrue, v1beta1.ReasonDrained, saysDrained}
	case byNone:
		return reach{metav1.ConditionFalse, v1beta1.ReasonNotDrained, saysNotDrained}
	case byWebhook:
	}
	return asked
}

// How the API server's messages about the canary's webhook begin.
const (
	canaryDenied = `admission webhook "` + string(policies.WebhookCanary) + `" denied the request: `
	canaryFailed = `failed calling webhook "` + string(policies.WebhookCanary) + `": `
)

// What each reason means, and what to look at. The API server's own words follow.
const (
	saysReached    = "the API server asks weir's webhook, and is answered"
	saysNotReached = "the API server does not reach weir's webhook, and Weir judges nothing: see that it runs and is " +
		"ready, and that neither a firewall nor a NetworkPolicy is between: "
	saysNoAnswer = "the API server gets no answer from weir's webhook in time, and Weir judges nothing: see its load " +
		"and its limits, and that neither a firewall nor a NetworkPolicy is between: "
	saysNotTrusted = "the API server does not trust the certificate of weir's webhook, and Weir judges nothing: see " +
		"that it is for the name or address in the webhook configurations, and signed by the CA there: "
	saysRefused = "weir's webhook, or what is in its place, sends the API server away, and Weir judges nothing: see " +
		"its log: "
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
		return reach{metav1.ConditionFalse, v1beta1.ReasonRefused, saysRefused + "it does not give weir's answer: " + said}
	}
	_, why, ok := strings.Cut(text, canaryFailed)
	if !ok {
		return reach{metav1.ConditionUnknown, v1beta1.ReasonNotTried, saysNotTried + text}
	}
	no := func(reason, says string) reach { return reach{metav1.ConditionFalse, reason, says + why} }
	switch {
	case containsAny(why, "context deadline exceeded", "Client.Timeout exceeded", "request canceled",
		"TLS handshake timeout"):
		return no(v1beta1.ReasonNotReached, saysNoAnswer)
	case containsAny(why, "remote error: tls"): // it requires a client certificate
		return no(v1beta1.ReasonRefused, saysRefused)
	case containsAny(why, "x509:", "tls: failed to verify"):
		return no(v1beta1.ReasonNotTrusted, saysNotTrusted)
	case containsAny(why, "the server ", "an error on the server", "webhook response", "received invalid",
		"expected response"):
		return no(v1beta1.ReasonRefused, saysRefused)
	}
	return no(v1beta1.ReasonNotReached, saysNotReached)
}

func containsAny(text string, parts ...string) bool {
	for _, p := range parts {
		if strings.Contains(text, p) {
			return true
		}
	}
	return false
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
