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

// errTooMany is why a review is not taken in now, and can be later.
var errTooMany = errors.New("weir has as many reviews under way as it takes")

// beginning is how much is read of a review that is not taken in, in bytes: the API server writes
// the uid before all else.
const beginning = 512

// busy answers for a review that is not taken in. Users can bring that about, and no failurePolicy
// may let them past for it: the request is refused, and may come again. Where no policy refuses
// anything, because all of them are on trial or only have the finalizer added, the answer is an
// error, which their failurePolicy, Ignore, lets through.
func (in *intake) busy(w http.ResponseWriter, r *http.Request, asked policies.Webhook, part policies.Part, m *metrics) {
	m.requests.WithLabelValues("", "", "busy").Inc()
	w.Header().Set("Retry-After", "1")
	hangUp(w)
	in.withhold(w, r.Body, asked, part, tooBusy(asked), errTooMany)
}

// withhold answers for a review that is not judged: with a refusal where a policy might refuse, and
// otherwise with an error.
func (in *intake) withhold(w http.ResponseWriter, body io.Reader, asked policies.Webhook, part policies.Part, no answer, why error) {
	if mayRefuse(in.refuses, asked, part) {
		if uid := uidOf(body); uid != "" {
			reply(w, uid, no)
			return
		}
	}
	http.Error(w, why.Error(), int(no.response.Result.Code))
}

// tooLarge refuses what is too large to be judged. Whoever may edit an object can make it so large.
func tooLarge(why error) answer {
	return refused(policies.Decision{Code: http.StatusRequestEntityTooLarge, Reason: metav1.StatusReasonRequestEntityTooLarge,
		Message: "this cannot be judged: " + why.Error() + ". Make the object smaller; the review of an edit has it twice"}, 0)
}

// tooBusy refuses for now. Collectors come again by themselves: with a Retry-After client-go would
// have their workers wait, as brake says.
func tooBusy(asked policies.Webhook) answer {
	wait := time.Second
	if asked == policies.WebhookBrake || asked == policies.WebhookGuard {
		wait = 0
	}
	return refused(policies.Decision{Code: http.StatusTooManyRequests, Reason: metav1.StatusReasonTooManyRequests,
		Message: "this cannot be judged now, because too much else is: try again in a second"}, wait)
}

// mayRefuse tells whether a request can be refused for policies that it was not judged by.
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
