package load

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync/atomic"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/weir-dev/weir/e2e/plane"
)

// guardName is that of the webhook configurations, of which there is one of a kind.
const guardName = "weir"

// A Guard is a webhook that the API server asks.
type Guard struct {
	// Rules are what it is asked about.
	Rules []admissionregistrationv1.ValidatingWebhook
	// Asked is how many reviews it has answered.
	Asked func(context.Context) (float64, error)
	end   func() error
	admin kubernetes.Interface
}

// StartWeirGuard runs weir's webhook with a directory of policies. Its controller runs
// only until it has told the API server: what is measured is what a review costs.
func StartWeirGuard(ctx context.Context, p *plane.Plane, binary, kubeconfig, policies string) (*Guard, error) {
	ports := make([]int, 3)
	for i := range ports {
		var err error
		if ports[i], err = plane.FreePort(); err != nil {
			return nil, err
		}
	}
	both := []string{"--kubeconfig", kubeconfig, "--policy-dir", policies, "--webhook-url", fmt.Sprintf("https://localhost:%d", ports[0])}
	hook := plane.Command("weir-webhook", binary, filepath.Join(p.Dir, "weir-webhook.log"), append([]string{"webhook",
		"--webhook-bind-address", fmt.Sprintf("127.0.0.1:%d", ports[0]), "--shutdown-delay", "0s",
		"--metrics-bind-address", fmt.Sprintf("127.0.0.1:%d", ports[1]), "--metrics-secure=false",
		"--health-probe-bind-address", fmt.Sprintf("127.0.0.1:%d", ports[2])}, both...)...)
	controller := plane.Command("weir-controller", binary, filepath.Join(p.Dir, "weir-controller.log"), append([]string{"controller",
		"--mode", "companion", "--leader-elect=false", "--metrics-bind-address", "0", "--health-probe-bind-address", "0"}, both...)...)
	g, err := newGuard(p.Config, func() error { return hook.Stop(plane.DefaultGrace) })
	if err != nil {
		return nil, err
	}
	g.Asked = func(ctx context.Context) (float64, error) {
		text, err := get(ctx, fmt.Sprintf("http://127.0.0.1:%d/metrics", ports[1]))
		if err != nil {
			return 0, err
		}
		families, err := parseMetrics(text)
		asked := 0.0
		for _, m := range families["weir_webhook_requests_total"].GetMetric() {
			asked += m.GetCounter().GetValue()
		}
		return asked, err
	}
	err = hook.Start(ctx)
	if err == nil {
		err = awaitReady(ctx, hook, fmt.Sprintf("http://127.0.0.1:%d/readyz", ports[2]))
	}
	if err == nil {
		err = controller.Start(ctx)
	}
	if err == nil {
		err = g.installed(ctx)
	}
	return g, errors.Join(err, controller.Stop(plane.DefaultGrace))
}

// installed waits until the API server has what to ask.
func (g *Guard) installed(ctx context.Context) error {
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		c, err := g.admin.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(ctx, guardName, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		if err == nil {
			g.Rules = c.Webhooks
		}
		return err == nil, err
	})
	if err != nil {
		return fmt.Errorf("wait for the webhook configuration: %w", err)
	}
	return nil
}

// StartEmptyGuard serves a webhook that allows everything unseen, and is asked about
// what another one is.
func StartEmptyGuard(ctx context.Context, cfg *rest.Config, rules []admissionregistrationv1.ValidatingWebhook) (*Guard, error) {
	var asked atomic.Int64
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(in.Body).Decode(&review); err != nil {
			http.Error(out, err.Error(), http.StatusBadRequest)
			return
		}
		asked.Add(1)
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
		review.Request = nil
		out.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(out).Encode(review) // the API server went away: nobody to tell
	}))
	server.EnableHTTP2 = true
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	server.StartTLS()
	g, err := newGuard(cfg, func() error { server.Close(); return nil })
	if err != nil {
		return nil, err
	}
	g.Asked = func(context.Context) (float64, error) { return float64(asked.Load()), nil }
	c := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: guardName}}
	for _, rule := range rules {
		rule.ClientConfig = admissionregistrationv1.WebhookClientConfig{URL: &server.URL,
			CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})}
		c.Webhooks = append(c.Webhooks, rule)
	}
	if _, err := g.admin.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(ctx, c, metav1.CreateOptions{}); err != nil {
		return nil, errors.Join(fmt.Errorf("install the empty webhook: %w", err), g.Stop(ctx))
	}
	return g, nil
}

func newGuard(cfg *rest.Config, end func() error) (*Guard, error) {
	admin, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("make a client for webhook configurations: %w", err)
	}
	return &Guard{admin: admin, end: end}, nil
}

// Stop has the API server ask nobody any more, and ends the webhook.
func (g *Guard) Stop(ctx context.Context) error {
	admission := g.admin.AdmissionregistrationV1()
	var errs []error
	for _, remove := range []func(context.Context, string, metav1.DeleteOptions) error{
		admission.MutatingWebhookConfigurations().Delete, admission.ValidatingWebhookConfigurations().Delete,
	} {
		if err := remove(ctx, guardName, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			errs = append(errs, fmt.Errorf("remove a webhook configuration: %w", err))
		}
	}
	return errors.Join(append(errs, g.end())...)
}

// AwaitAsked waits until the API server asks about the deletion of an object.
func (g *Guard) AwaitAsked(ctx context.Context, cfg *rest.Config, p *Population) error {
	client, err := metadata.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("wait for a webhook to be asked: %w", err)
	}
	in := client.Resource(p.Shape.Kind.gvr()).Namespace(p.Namespace)
	err = wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		if err := in.Delete(ctx, p.Owner.Name, metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
			return false, err
		}
		asked, err := g.Asked(ctx)
		return asked > 0, err
	})
	if err != nil {
		return fmt.Errorf("wait for a webhook to be asked: %w", err)
	}
	return nil
}
