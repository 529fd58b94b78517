package webhook

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/policies"
)

// reviewer judges one request.
type reviewer func(*http.Request, policies.Question) answer

// answer is what to say: a response, or an error that leaves the request to the failurePolicy.
type answer struct {
	response *admissionv1.AdmissionResponse
	result   string // for metrics
	err      error
}

// review is the handler of one webhook.
func review(asked policies.Webhook, judge reviewer, m *metrics, log *sayer) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		in, status, err := read(w, r)
		if err != nil {
			m.answered(asked, "", "malformed", began)
			log.say("malformed review", "webhook", asked, "err", err.Error())
			http.Error(w, err.Error(), status)
			return
		}
		operation := string(in.Request.Operation)
		q, err := policies.FromRequest(in.Request)
		if err == nil {
			err = checkNames(&q)
		}
		if err != nil {
			m.answered(asked, operation, "malformed", began)
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		a := judge(r, q)
		if a.err != nil {
			m.answered(asked, operation, "error", began)
			log.say("could not judge a request", "webhook", asked, "operation", operation, "resource", q.Resource.GroupResource().String(),
				"namespace", q.Namespace, "name", q.Name, "user", q.User.Name, "err", a.err.Error())
			http.Error(w, a.err.Error(), http.StatusInternalServerError)
			return
		}
		a.response.UID = in.Request.UID
		out, err := json.Marshal(admissionv1.AdmissionReview{
			TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"},
			Response: a.response,
		})
		if err != nil {
			http.Error(w, fmt.Sprintf("encode the answer: %v", err), http.StatusInternalServerError)
			return
		}
		m.answered(asked, operation, a.result, began)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(out) // the API server went away: there is nobody to tell
	}
}
