package e2e

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/e2e/plane"
)

// gate is an admission webhook that keeps the creation of ConfigMaps waiting.
type gate struct {
	w       *fixture
	reached chan struct{} // one is waiting
	open    chan struct{} // closed: they may pass
}

// newGate installs a gate for the fixture's namespace, and returns when the API
// server asks it.
func (w *fixture) newGate() *gate {
	w.Helper()
	g := &gate{w: w, reached: make(chan struct{}, 1), open: make(chan struct{})}
	server := httptest.NewTLSServer(g)
	w.Cleanup(server.Close)
	_, err := w.typed.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(w.Context(), &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: w.namespace},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: w.namespace + ".example.com",
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				URL: new(server.URL), CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
			},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
			}},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": w.namespace}},
			TimeoutSeconds:    new(int32(30)), SideEffects: new(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	probe := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "probe"}}
	w.until("the webhook is called", func(ctx context.Context) (bool, error) {
		_, err := w.typed.CoreV1().ConfigMaps(w.namespace).Create(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil, nil
	})
	return g
}

// ServeHTTP refuses the probe, lets through what Kubernetes makes, and keeps the
// rest waiting.
func (g *gate) ServeHTTP(out http.ResponseWriter, in *http.Request) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(in.Body).Decode(&review); err != nil {
		http.Error(out, err.Error(), http.StatusBadRequest)
		return
	}
	review.Response = &admissionv1.AdmissionResponse{Allowed: true}
	switch review.Request.Name {
	case "probe":
		review.Response = refusal(http.StatusForbidden, 0)
	case "late":
		g.reached <- struct{}{}
		select {
		case <-g.open:
		case <-in.Context().Done():
		}
	}
	review.Response.UID = review.Request.UID
	review.Request = nil
	answer(out, review)
}

// create makes a ConfigMap that the gate keeps waiting. The error comes when it
// has passed.
func (g *gate) create() <-chan error {
	done := make(chan error, 1)
	late := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "late"}}
	go func() {
		_, err := g.w.typed.CoreV1().ConfigMaps(g.w.namespace).Create(g.w.Context(), late, metav1.CreateOptions{})
		done <- err
	}()
	<-g.reached
	return done
}

// mustArrive lets what waits pass.
func (g *gate) mustArrive(done <-chan error) {
	g.w.Helper()
	close(g.open)
	if err := <-done; err != nil {
		g.w.Fatalf("the late object did not arrive: %v", err)
	}
}

// mustComeEmpty makes another namespace of the same name, and looks for what the
// one before may have left.
func (w *fixture) mustComeEmpty() {
	w.Helper()
	again := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}
	if _, err := w.typed.CoreV1().Namespaces().Create(w.Context(), again, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
	if _, err := w.typed.CoreV1().ConfigMaps(w.namespace).Get(w.Context(), "late", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		w.Errorf("the namespace came with an object of the one before: %v", err)
	}
}

// TestCreateThatASlowWebhookHoldsGoesWithTheNamespace: it passed the check of the
// namespace before the deletion, and arrives when all else is gone.
func TestCreateThatASlowWebhookHoldsGoesWithTheNamespace(t *testing.T) {
	t.Parallel()
	w := newCluster(t, plane.Options{})
	g := w.newGate()
	w.startWeir()
	done := g.create()
	uid := w.drop()
	w.awaitConditions("WeirDraining=True Waiting: waiting for content that may still arrive: creates that began before the deletion may be with admission webhooks of the configuration …")
	g.mustArrive(done)
	w.awaitDropped(uid)
	w.mustComeEmpty()
}

// TestCreateThatArrivesWhenTheNamespaceIsGoneIsDeleted: the webhook takes longer
// than a namespace waits.
func TestCreateThatArrivesWhenTheNamespaceIsGoneIsDeleted(t *testing.T) {
	t.Parallel()
	w := newCluster(t, plane.Options{})
	g := w.newGate()
	w.startWeir()
	done := g.create()
	w.awaitDropped(w.drop())
	g.mustArrive(done)
	w.until("it is deleted", func(ctx context.Context) (bool, error) {
		_, err := w.typed.CoreV1().ConfigMaps(w.namespace).Get(ctx, "late", metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	})
	w.mustComeEmpty()
}
