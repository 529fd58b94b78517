package e2e

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// hook is an admission webhook that a test serves for the ConfigMaps of its
// namespace.
type hook struct {
	w      *fixture
	server *httptest.Server

	mu      sync.Mutex
	decide  func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse
	reviews map[string][]time.Time // by object, of weir's requests
	all     bool                   // it decides about the requests of others, too
}

// newHook installs a webhook and returns when the API server calls it. decide
// answers weir's requests; nil allows.
func (w *fixture) newHook(mutating bool, decide func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse) *hook {
	w.Helper()
	h := &hook{w: w, decide: decide, reviews: map[string][]time.Time{}}
	h.server = httptest.NewTLSServer(h)
	w.Cleanup(h.server.Close)
	w.make("cm probe")
	h.install(mutating)
	w.until("the webhook is called", func(context.Context) (bool, error) { return h.called(), nil })
	return h
}

// install registers the webhook for what this namespace's ConfigMaps go through.
func (h *hook) install(mutating bool) {
	h.w.Helper()
	client := admissionregistrationv1.WebhookClientConfig{
		URL:      new(h.server.URL),
		CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: h.server.Certificate().Raw}),
	}
	here := &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": h.w.namespace}}
	rules := []admissionregistrationv1.RuleWithOperations{{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Delete, admissionregistrationv1.Update},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
	}}
	meta := metav1.ObjectMeta{Name: h.w.namespace}
	name, noEffects := h.w.namespace+".example.com", admissionregistrationv1.SideEffectClassNone
	admission := h.w.typed.AdmissionregistrationV1()
	var err error
	if mutating {
		_, err = admission.MutatingWebhookConfigurations().Create(h.w.Context(), &admissionregistrationv1.MutatingWebhookConfiguration{
			ObjectMeta: meta, Webhooks: []admissionregistrationv1.MutatingWebhook{{
				Name: name, ClientConfig: client, Rules: rules, NamespaceSelector: here,
				SideEffects: &noEffects, AdmissionReviewVersions: []string{"v1"},
			}},
		}, metav1.CreateOptions{})
	} else {
		_, err = admission.ValidatingWebhookConfigurations().Create(h.w.Context(), &admissionregistrationv1.ValidatingWebhookConfiguration{
			ObjectMeta: meta, Webhooks: []admissionregistrationv1.ValidatingWebhook{{
				Name: name, ClientConfig: client, Rules: rules, NamespaceSelector: here,
				SideEffects: &noEffects, AdmissionReviewVersions: []string{"v1"},
			}},
		}, metav1.CreateOptions{})
	}
	if err != nil {
		h.w.Fatal(err)
	}
}

// called tries a deletion that the webhook always refuses.
func (h *hook) called() bool {
	err := h.w.at(h.w.of("probe")).Delete(h.w.Context(), "probe", metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
	return err != nil
}

// allow stops deciding: the webhook stays, and allows everything.
func (h *hook) allow() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.decide = nil
}

// seen are the times at which it was asked about an object on behalf of weir.
func (h *hook) seen(name string) []time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.reviews[name]
}

// awaitSeen waits until it was asked so often.
func (h *hook) awaitSeen(name string, n int) []time.Time {
	h.w.Helper()
	h.w.until("the webhook was asked again about "+name, func(context.Context) (bool, error) {
		return len(h.seen(name)) >= n, nil
	})
	return h.seen(name)
}

// ServeHTTP answers a review.
func (h *hook) ServeHTTP(out http.ResponseWriter, in *http.Request) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(in.Body).Decode(&review); err != nil {
		http.Error(out, err.Error(), http.StatusBadRequest)
		return
	}
	review.Response = h.answer(review.Request)
	review.Response.UID = review.Request.UID
	review.Request = nil
	out.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(out).Encode(review) // the API server went away: there is none to tell
}

func (h *hook) answer(r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	if r.Name == "probe" {
		return refusal(http.StatusForbidden, 0)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.all || r.UserInfo.Username == weirUser {
		h.reviews[r.Name] = append(h.reviews[r.Name], time.Now())
		if h.decide != nil {
			if answer := h.decide(r); answer != nil {
				return answer
			}
		}
	}
	return &admissionv1.AdmissionResponse{Allowed: true}
}

// refusal is a refusal with a code; the webhook chooses it freely.
func refusal(code, retryAfterSeconds int32) *admissionv1.AdmissionResponse {
	reason := map[int32]metav1.StatusReason{
		403: metav1.StatusReasonForbidden, 404: metav1.StatusReasonNotFound, 409: metav1.StatusReasonConflict,
		429: metav1.StatusReasonTooManyRequests, 500: metav1.StatusReasonInternalError,
	}[code]
	status := &metav1.Status{Code: code, Reason: reason, Message: "not today"}
	if retryAfterSeconds > 0 {
		status.Details = &metav1.StatusDetails{RetryAfterSeconds: retryAfterSeconds}
	}
	return &admissionv1.AdmissionResponse{Result: status}
}

// change is an answer that patches the object.
func change(patch any) *admissionv1.AdmissionResponse {
	data, err := json.Marshal(patch)
	if err != nil {
		return refusal(http.StatusInternalServerError, 0)
	}
	return &admissionv1.AdmissionResponse{Allowed: true, Patch: data, PatchType: new(admissionv1.PatchTypeJSONPatch)}
}

// named answers only for one object.
func named(name string, answer *admissionv1.AdmissionResponse) func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	return func(r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		if r.Name != name {
			return nil
		}
		copied := *answer
		return &copied
	}
}
