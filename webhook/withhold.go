package webhook

import (
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/tidwall/gjson"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/policies"
)

// beginning is how much is read of a review that is not taken in, in bytes: the API server writes
// the uid before all else.
const beginning = 512

// notTaken answers for a review that is not taken in, and of which there is this much. Users can
// bring that about, and no failurePolicy may let them past for it: the request is refused. Where no
// policy refuses anything, because all of them are on trial or only add the finalizer, the answer is
// an error, which their failurePolicy, Ignore, lets through.
func (e *entry) notTaken(w http.ResponseWriter, from io.Reader, why error, began time.Time) {
	var no answer
	switch {
	case errors.Is(why, errTooMany):
		e.metrics.requests.WithLabelValues("", "", "busy").Inc()
		w.Header().Set("Retry-After", "1")
		hangUp(w)
		no = tooBusy(e.asked)
	case errors.Is(why, errTooLarge):
		e.metrics.answered(e.asked, "", "large", began)
		e.log.say("review that is too large", "webhook", e.asked, "err", why.Error())
		no = tooLarge(why)
	default:
		e.malformed(w, "", http.StatusBadRequest, why, began)
		return
	}
	if mayRefuse(e.in.refuses, e.asked, e.part) {
		if uid := uidOf(from); uid != "" {
			reply(w, uid, no)
			return
		}
	}
	http.Error(w, why.Error(), int(no.response.Result.Code))
}

// tooLarge refuses what is too large to be judged. Whoever may edit an object can make it so large.
func tooLarge(why error) answer {
	message := "this cannot be judged: " + why.Error() + ". Make the object smaller; the review of an update has it twice"
	return refused(policies.Decision{Code: http.StatusRequestEntityTooLarge,
		Reason: metav1.StatusReasonRequestEntityTooLarge, Message: message}, 0)
}

// tooBusy refuses for now. Collectors come again by themselves: with a Retry-After client-go would
// have their workers wait, as brake says.
func tooBusy(asked policies.Webhook) answer {
	wait := time.Second
	if asked == policies.WebhookBrake || asked == policies.WebhookGuard {
		wait = 0
	}
	return refused(policies.Decision{Code: http.StatusTooManyRequests, Reason: metav1.StatusReasonTooManyRequests,
		Message: "too many requests are being judged: try again in a second"}, wait)
}

// mayRefuse tells whether a request can be refused for policies that it was not judged by. refuses
// tells whether any of a part refuses anything.
func mayRefuse(refuses func(policies.Part) bool, asked policies.Webhook, part policies.Part) bool {
	switch asked {
	case policies.WebhookAddFinalizer, policies.WebhookCanary, policies.WebhookPolicies:
		return false // what these are asked for nothing waits for
	case policies.WebhookBrake:
		return true // the other collector asks again
	}
	return refuses(part)
}

// uidOf is the uid of the request of a review, of which only the beginning is read; empty if it is
// not there.
func uidOf(body io.Reader) types.UID {
	text := make([]byte, beginning)
	n, _ := io.ReadFull(body, text) // of one that ends early, or does not come, what there is
	return types.UID(gjson.GetBytes(text[:n], "request.uid").Str)
}
