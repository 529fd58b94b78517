package webhook

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/policies"
)

// mostBody bounds what is read of a request, in bytes. An object has at most 3 MiB, and a review holds it twice, with
// every quote and line break escaped at worst.
const mostBody = 16 << 20

// reviewer judges one request.
type reviewer func(*http.Request, policies.Question) answer

// answer is what to say: a response, or an error that leaves the request to the failurePolicy.
type answer struct {
	response *admissionv1.AdmissionResponse
	result   string // for metrics
	err      error
}

// review is the handler of one webhook.
func review(asked policies.Webhook, judge reviewer, m *metrics, log logr.Logger) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		in, status, err := read(w, r)
		if err != nil {
			m.answered(asked, "", "malformed", began)
			log.V(1).Info("malformed review", "webhook", asked, "err", err.Error())
			http.Error(w, err.Error(), status)
			return
		}
		operation := string(in.Request.Operation)
		q, err := policies.FromRequest(in.Request)
		if err != nil {
			m.answered(asked, operation, "malformed", began)
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		a := judge(r, q)
		if a.err != nil {
			m.answered(asked, operation, "error", began)
			log.Info("could not judge a request", "webhook", asked, "operation", operation, "resource", q.Resource.GroupResource().String(),
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

// read reads a review. The error is for whoever sent it, with the HTTP status to send.
func read(w http.ResponseWriter, r *http.Request) (*admissionv1.AdmissionReview, int, error) {
	if t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || t != "application/json" {
		return nil, http.StatusUnsupportedMediaType, fmt.Errorf("content type is %q, want application/json", r.Header.Get("Content-Type"))
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostBody))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return nil, http.StatusRequestEntityTooLarge, fmt.Errorf("the review has more than %d bytes", mostBody)
	}
	if err != nil {
		return nil, http.StatusBadRequest, fmt.Errorf("read the review: %w", err)
	}
	var in admissionv1.AdmissionReview
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, http.StatusBadRequest, fmt.Errorf("decode the review: %w", err)
	}
	if in.APIVersion != admissionv1.SchemeGroupVersion.String() || in.Kind != "AdmissionReview" {
		return nil, http.StatusBadRequest, fmt.Errorf("this is %s %s, want an AdmissionReview of %s", in.APIVersion, in.Kind, admissionv1.SchemeGroupVersion)
	}
	if in.Request == nil || in.Request.UID == "" {
		return nil, http.StatusBadRequest, errors.New("the review has no request, or its request no uid")
	}
	return &in, 0, nil
}
