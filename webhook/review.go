package webhook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/policies"
)

// reviewer judges one request.
type reviewer func(*http.Request, policies.Question) answer

// answer is the answer to a review: a response, or an error that leaves the request to the
// failurePolicy.
type answer struct {
	response *admissionv1.AdmissionResponse
	result   string // for metrics
	err      error
}

// canary refuses, and repeats the number that it was sent, which no other process can do. It waits
// for nothing, so a slow answer means a slow webhook.
func canary(_ *http.Request, q policies.Question) answer {
	return refused(policies.Decision{Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden,
		Message: policies.AnswerToCanary(q.Options)}, 0)
}

// check judges policies that are written, by the request alone.
func check(_ *http.Request, q policies.Question) answer {
	if q.Operation == policies.Delete || q.Subresource != "" {
		return allowed(policies.Decision{Allowed: true})
	}
	d, err := policies.Check(&q)
	switch {
	case err != nil:
		return answer{err: err}
	case !d.Allowed:
		return refused(d, 0)
	}
	return allowed(d)
}

// entry serves one webhook for one part of the policies.
type entry struct {
	asked   policies.Webhook
	part    policies.Part
	judge   reviewer
	in      *intake
	metrics *metrics
	log     *sayer
}

// ServeHTTP implements http.Handler.
func (e *entry) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	said := r.Header.Get("Content-Type")
	if t, _, err := mime.ParseMediaType(said); err != nil || t != "application/json" {
		err = fmt.Errorf("content type is %q, want application/json", said)
		e.malformed(w, "", http.StatusUnsupportedMediaType, err, began)
		return
	}
	body, room, err := e.in.take(w, r)
	defer e.in.free.Release(room)
	if err != nil {
		e.notTaken(w, io.MultiReader(bytes.NewReader(body), r.Body), err, began)
		return
	}
	review, err := understand(body)
	if err != nil {
		e.malformed(w, "", http.StatusBadRequest, err, began)
		return
	}
	operation := string(review.Request.Operation)
	q, err := policies.FromRequest(review.Request)
	if err == nil {
		err = checkNames(&q)
	}
	if err != nil {
		e.malformed(w, operation, http.StatusBadRequest, err, began)
		return
	}
	q.Part = e.part
	a := e.judge(r, q)
	if a.err != nil {
		e.metrics.answered(e.asked, operation, "error", began)
		e.log.say("could not judge a request", "webhook", e.asked, "operation", operation,
			"resource", q.Resource.GroupResource().String(), "namespace", q.Namespace, "name", q.Name,
			"user", q.User.Name, "err", a.err.Error())
		http.Error(w, a.err.Error(), http.StatusInternalServerError)
		return
	}
	if reply(w, review.Request.UID, a) {
		e.metrics.answered(e.asked, operation, a.result, began)
	}
}

// malformed answers what is not a review.
func (e *entry) malformed(w http.ResponseWriter, operation string, status int, err error, began time.Time) {
	e.metrics.answered(e.asked, operation, "malformed", began)
	e.log.say("malformed review", "webhook", e.asked, "err", err.Error())
	http.Error(w, err.Error(), status)
}

// reply writes an answer to the request with a uid, and reports whether it could be encoded.
func reply(w http.ResponseWriter, uid types.UID, a answer) bool {
	a.response.UID = uid
	out, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"},
		Response: a.response,
	})
	if err != nil {
		http.Error(w, fmt.Sprintf("encode the answer: %v", err), http.StatusInternalServerError)
		return false
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(out) // fails only if the API server went away
	return true
}
