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

// beginning is how much is read of a review that is not taken, in bytes: the API server writes the
// uid before all else.
const beginning = 512

// notTaken answers a review that is not taken, of which from is what there is. Users can cause
// that, so the request is refused and not left to the failurePolicy. Where no policy refuses
// anything, because all are on trial or only add the finalizer, the answer is an error, and their
// failurePolicy, Ignore, lets the request pass.
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

// tooLarge refuses what is too large to be judged. A user who may edit an object can make it so
// large.
func tooLarge(why error) answer {
	message := "this cannot be judged: " + why.Error() + ". Make the object smaller; the review of an update has it twice"
	return refused(policies.Decision{Code: http.StatusRequestEntityTooLarge,
		Reason: metav1.StatusReasonRequestEntityTooLarge, Message: message}, 0)
}

// tooBusy refuses for now. Collectors get no Retry-After, for which client-go would have their
// workers wait: they requeue the object by themselves.
func tooBusy(asked policies.Webhook) answer {
	wait := time.Second
	if asked == policies.WebhookGuard {
		wait = 0
	}
	return refused(policies.Decision{Code: http.StatusTooManyRequests, Reason: metav1.StatusReasonTooManyRequests,
		Message: "too many requests are being judged: try again in a second"}, wait)
}

// mayRefuse reports whether a request may be refused for policies by which it was not judged.
// refuses reports whether policies of a part refuse anything.
func mayRefuse(refuses func(policies.Part) bool, asked policies.Webhook, part policies.Part) bool {
	switch asked {
	case policies.WebhookAddFinalizer, policies.WebhookCanary, policies.WebhookPolicies:
		return false // nothing is lost if such a request passes
	}
	return refuses(part)
}

// uidOf returns the uid of the request of a review, of which it reads the beginning; empty if it is
// not there.
func uidOf(body io.Reader) types.UID {
	text := make([]byte, beginning)
	n, _ := io.ReadFull(body, text) // less if the body ends early
	return types.UID(gjson.GetBytes(text[:n], "request.uid").Str)
}
