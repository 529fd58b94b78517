package webhook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

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

// review is the handler of one webhook, about one part of the policies.
func review(asked policies.Webhook, part policies.Part, judge reviewer, in *intake, m *metrics, log *sayer) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		malformed := func(operation string, status int, err error) {
			m.answered(asked, operation, "malformed", began)
			log.say("malformed review", "webhook", asked, "err", err.Error())
			http.Error(w, err.Error(), status)
		}
		body, size, status, err := readSized(w, r)
		if status == http.StatusRequestEntityTooLarge {
			m.answered(asked, "", "large", began)
			log.say("review that is too large", "webhook", asked, "err", err.Error())
			in.withhold(w, bytes.NewReader(body), asked, part, tooLarge(err), err)
			return
		}
		if err != nil {
			malformed("", status, err)
			return
		}
		if !in.await(r.Context(), in.decoded, size) {
			r.Body = io.NopCloser(bytes.NewReader(body))
			in.busy(w, r, asked, part, m)
			return
		}
		defer in.decoded.Release(size)
		review, err := understand(body)
		if err != nil {
			malformed("", http.StatusBadRequest, err)
			return
		}
		operation := string(review.Request.Operation)
		q, err := policies.FromRequest(review.Request)
		if err == nil {
			err = checkNames(&q)
		}
		if err != nil {
			malformed(operation, http.StatusBadRequest, err)
			return
		}
		q.Part = part
		a := judge(r, q)
		if a.err != nil {
			m.answered(asked, operation, "error", began)
			log.say("could not judge a request", "webhook", asked, "operation", operation, "resource", q.Resource.GroupResource().String(),
				"namespace", q.Namespace, "name", q.Name, "user", q.User.Name, "err", a.err.Error())
			http.Error(w, a.err.Error(), http.StatusInternalServerError)
			return
		}
		if reply(w, review.Request.UID, a) {
			m.answered(asked, operation, a.result, began)
		}
	}
}

// readSized is read, with how much the review takes when it is decoded.
func readSized(w http.ResponseWriter, r *http.Request) (body []byte, size int64, status int, err error) {
	if body, status, err = read(w, r); err != nil {
		return body, 0, status, err
	}
	if size = decodedSize(body); size > mostDecoded {
		return body, size, http.StatusRequestEntityTooLarge, fmt.Errorf("the review takes up to %d bytes when it is decoded, more than %d", size, mostDecoded)
	}
	return body, size, 0, nil
}

// reply writes an answer to the request with this uid, and tells whether there was one to write.
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
	_, _ = w.Write(out) // the API server went away: there is none to tell
	return true
}
