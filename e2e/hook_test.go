package e2e

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// hook is an admission webhook that a test serves for a kind of objects in its namespace: for
// ConfigMaps, unless it says otherwise.
type hook struct {
	w          *fixture
	server     *httptest.Server
	kind       string // short
	mutating   bool
	operations []admissionregistrationv1.OperationType // none: deletes and updates
	timeout    int32                                   // seconds; 0: the API server's default
	all        bool                                    // it decides about the requests of others, too

	mu      sync.Mutex
	decide  func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse // which may take its time; nil allows
	reviews map[string][]time.Time                                             // by object, of those that it decides
}

// newHook installs a webhook that decides about weir's requests.
func (w *fixture) newHook(mutating bool, decide func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse) *hook {
	w.Helper()
	return w.serveHook(&hook{kind: "cm", mutating: mutating, decide: decide})
}

// serveHook installs a webhook, and returns when the API server calls it.
func (w *fixture) serveHook(h *hook) *hook {
	w.Helper()
	h.w, h.reviews = w, map[string][]time.Time{}
	h.server = httptest.NewTLSServer(h)
	w.Cleanup(h.server.Close)
	w.make(h.kind + " probe")
	h.install()
	w.until("the webhook is called", func(context.Context) (bool, error) { return h.called(), nil })
	return h
}

// install registers the webhook, in whose place nothing else is asked.
func (h *hook) install() {
	h.w.Helper()
	if h.operations == nil {
		h.operations = []admissionregistrationv1.OperationType{admissionregistrationv1.Delete, admissionregistrationv1.Update}
	}
	hook := admissionregistrationv1.ValidatingWebhook{
		Name: h.w.namespace + ".example.com",
		ClientConfig: admissionregistrationv1.WebhookClientConfig{
			URL: new(h.server.URL), CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: h.server.Certificate().Raw}),
		},
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: h.operations,
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{h.w.kinds[h.kind].resource}},
		}},
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": h.w.namespace}},
		SideEffects:       new(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
	}
	if h.timeout > 0 {
		hook.TimeoutSeconds = &h.timeout
	}
	meta, admission := metav1.ObjectMeta{Name: h.w.namespace}, h.w.typed.AdmissionregistrationV1()
	var err error
	if h.mutating {
		_, err = admission.MutatingWebhookConfigurations().Create(h.w.Context(), &admissionregistrationv1.MutatingWebhookConfiguration{
			ObjectMeta: meta, Webhooks: []admissionregistrationv1.MutatingWebhook{{
				Name: hook.Name, ClientConfig: hook.ClientConfig, Rules: hook.Rules, NamespaceSelector: hook.NamespaceSelector,
				SideEffects: hook.SideEffects, AdmissionReviewVersions: hook.AdmissionReviewVersions,
			}},
		}, metav1.CreateOptions{})
	} else {
		_, err = admission.ValidatingWebhookConfigurations().Create(h.w.Context(), &admissionregistrationv1.ValidatingWebhookConfiguration{
			ObjectMeta: meta, Webhooks: []admissionregistrationv1.ValidatingWebhook{hook}}, metav1.CreateOptions{})
	}
	if err != nil {
		h.w.Fatal(err)
	}
}

// remove takes the webhook's configuration away.
func (h *hook) remove() {
	h.w.Helper()
	if err := h.w.typed.AdmissionregistrationV1().ValidatingWebhookConfigurations().Delete(h.w.Context(), h.w.namespace, metav1.DeleteOptions{}); err != nil {
		h.w.Fatal(err)
	}
}

// called tries to delete the probe, and to make another, of which the webhook refuses what it is asked
// about where that is tried.
func (h *hook) called() bool {
	h.w.Helper()
	probe, dryRun := h.w.of("probe"), []string{metav1.DryRunAll}
	if err := h.w.at(probe).Delete(h.w.Context(), probe.name, metav1.DeleteOptions{DryRun: dryRun}); err != nil {
		return true
	}
	another, err := probe.manifest("probe-too", nil, nil)
	if err != nil {
		h.w.Fatal(err)
	}
	_, err = h.w.at(probe).Create(h.w.Context(), another, metav1.CreateOptions{DryRun: dryRun})
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
	answer(out, review)
}

func (h *hook) answer(r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	if strings.HasPrefix(r.Name, "probe") && r.DryRun != nil && *r.DryRun {
		return refusal(http.StatusForbidden, 0)
	}
	if h.all || r.UserInfo.Username == weirUser {
		h.mu.Lock()
		h.reviews[r.Name] = append(h.reviews[r.Name], time.Now())
		decide := h.decide
		h.mu.Unlock()
		if decide != nil {
			if answer := decide(r); answer != nil {
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
