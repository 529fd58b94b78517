package load

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"

	"github.com/weir-dev/weir/e2e/plane"
)

// guardName is that of the webhook configurations, of which there is one of a kind.
const guardName = "weir"

// A Guard is a webhook that the API server asks.
type Guard struct {
	// Rules are what it is asked about.
	Rules GuardRules
	// Asked is how many reviews it has answered.
	Asked   func(context.Context) (float64, error)
	process *plane.Child
	// controller is weir's, where it goes on.
	controller *plane.Child
	admin      kubernetes.Interface
}

// GuardRules are the entries of both webhook configurations.
type GuardRules struct {
	Validating []admissionregistrationv1.ValidatingWebhook
	Mutating   []admissionregistrationv1.MutatingWebhook
}

// StartWeirGuard runs weir's webhook with a directory of policies. Its controller runs
// only until it has told the API server: what is measured is what a review costs.
func StartWeirGuard(ctx context.Context, p *plane.Plane, binary, kubeconfig, policies string) (*Guard, error) {
	g, err := StartWeirPair(ctx, p, binary, kubeconfig, policies, "companion")
	if g != nil && g.controller != nil {
		err = errors.Join(err, g.controller.Stop(plane.DefaultGrace))
		g.controller = nil
	}
	return g, err
}

// StartWeirPair runs weir's webhook and its controller in a mode, with a directory of policies, and
// each with these flags as well.
func StartWeirPair(ctx context.Context, p *plane.Plane, binary, kubeconfig, policies, mode string, flags ...string) (*Guard, error) {
	ports := make([]int, 3)
	for i := range ports {
		var err error
		if ports[i], err = plane.FreePort(); err != nil {
			return nil, err
		}
	}
	both := []string{"--kubeconfig", kubeconfig, "--policy-dir", policies, "--webhook-url", fmt.Sprintf("https://localhost:%d", ports[0])}
	both = append(both, flags...)
	hook := plane.Command("weir-webhook", binary, filepath.Join(p.Dir, "weir-webhook.log"), append([]string{"webhook",
		"--webhook-bind-address", fmt.Sprintf("127.0.0.1:%d", ports[0]), "--shutdown-delay", "0s",
		"--metrics-bind-address", fmt.Sprintf("127.0.0.1:%d", ports[1]), "--metrics-secure=false",
		"--health-probe-bind-address", fmt.Sprintf("127.0.0.1:%d", ports[2])}, both...)...)
	controller := plane.Command("weir-controller", binary, filepath.Join(p.Dir, "weir-controller.log"), append([]string{"controller",
		"--mode", mode, "--leader-elect=false", "--in-process=Off", "--canary-time", "100ms", "--metrics-bind-address", "0", "--health-probe-bind-address", "0"}, both...)...)
	g, err := newGuard(p.Config, hook)
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
		g.controller = controller
		err = g.installed(ctx)
	}
	return g, err
}

// installed waits until the API server has what to ask.
func (g *Guard) installed(ctx context.Context) error {
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		c, err := g.admin.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(ctx, guardName, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		g.Rules.Validating = c.Webhooks
		// The controller writes it first, if there is anything to write.
		m, err := g.admin.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(ctx, guardName, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		if err == nil {
			g.Rules.Mutating = m.Webhooks
		}
		return err == nil, err
	})
	if err != nil {
		return fmt.Errorf("wait for the webhook configuration: %w", err)
	}
	return nil
}

// StartEmptyGuard has a webhook that allows everything unseen, and is asked about what another one
// is; it answers with a JSON patch that is always the same, or with none (empty). It is a process
// of its own, as weir's is: binary has to call ServeEmpty with what comes after EmptyGuard.
func StartEmptyGuard(ctx context.Context, p *plane.Plane, binary string, rules GuardRules, patch string) (*Guard, error) {
	hookPort, err := plane.FreePort()
	if err != nil {
		return nil, err
	}
	countPort, err := plane.FreePort()
	if err != nil {
		return nil, err
	}
	address, count := fmt.Sprintf("localhost:%d", hookPort), fmt.Sprintf("localhost:%d", countPort)
	certificate, key, err := cert.GenerateSelfSignedCertKey("localhost", nil, nil)
	if err != nil {
		return nil, fmt.Errorf("make a certificate for the empty webhook: %w", err)
	}
	certFile, keyFile := filepath.Join(p.Dir, "empty-webhook.crt"), filepath.Join(p.Dir, "empty-webhook.key")
	if err := errors.Join(os.WriteFile(certFile, certificate, 0o600), os.WriteFile(keyFile, key, 0o600)); err != nil {
		return nil, err
	}
	hook := plane.Command("empty-webhook", binary, filepath.Join(p.Dir, "empty-webhook.log"), EmptyGuard, address, certFile, keyFile, count, patch)
	g, err := newGuard(p.Config, hook)
	if err != nil {
		return nil, err
	}
	g.Asked = func(ctx context.Context) (float64, error) {
		text, err := get(ctx, "http://"+count)
		if err != nil {
			return 0, err
		}
		return strconv.ParseFloat(text, 64)
	}
	err = hook.Start(ctx)
	if err == nil {
		err = awaitReady(ctx, hook, "http://"+count)
	}
	if err == nil {
		err = g.install(ctx, "https://"+address, certificate, rules)
	}
	if err != nil {
		return nil, errors.Join(err, g.Stop(ctx))
	}
	return g, nil
}

// install has the API server ask at an address what it would ask elsewhere.
func (g *Guard) install(ctx context.Context, url string, ca []byte, rules GuardRules) error {
	client := admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: ca}
	validating := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: guardName}}
	for _, rule := range rules.Validating {
		rule.ClientConfig = client
		validating.Webhooks = append(validating.Webhooks, rule)
	}
	mutating := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: guardName}}
	for _, rule := range rules.Mutating {
		rule.ClientConfig = client
		mutating.Webhooks = append(mutating.Webhooks, rule)
	}
	admission := g.admin.AdmissionregistrationV1()
	_, err := admission.ValidatingWebhookConfigurations().Create(ctx, validating, metav1.CreateOptions{})
	if err == nil && len(mutating.Webhooks) > 0 {
		_, err = admission.MutatingWebhookConfigurations().Create(ctx, mutating, metav1.CreateOptions{})
	}
	if err != nil {
		return fmt.Errorf("install the empty webhook: %w", err)
	}
	return nil
}

func newGuard(cfg *rest.Config, process *plane.Child) (*Guard, error) {
	admin, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("make a client for webhook configurations: %w", err)
	}
	return &Guard{admin: admin, process: process}, nil
}

// CPU is how many seconds of processor time the webhook's process has taken.
func (g *Guard) CPU() (float64, error) { return CPU(g.process) }

// Controller is weir's, where it goes on.
func (g *Guard) Controller() *plane.Child { return g.controller }

// Stop has the API server ask no webhook any more, and ends the webhook.
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
	if g.controller != nil {
		errs = append(errs, g.controller.Stop(plane.DefaultGrace))
	}
	return errors.Join(append(errs, g.process.Stop(plane.DefaultGrace))...)
}

// AwaitAsked waits until the API server asks: about the deletion of an object, or about
// one with these labels that names an owner.
func (g *Guard) AwaitAsked(ctx context.Context, cfg *rest.Config, p *Population, labels map[string]string) error {
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("wait for a webhook to be asked: %w", err)
	}
	in := client.CoreV1().ConfigMaps(p.Namespace)
	dry := []string{metav1.DryRunAll}
	blocks := true
	probe := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "probe", Labels: labels, OwnerReferences: []metav1.OwnerReference{{
		APIVersion: "v1", Kind: "ConfigMap", Name: p.Owner.Name, UID: p.Owner.UID, BlockOwnerDeletion: &blocks,
	}}}}
	err = wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		_, err := in.Create(ctx, probe, metav1.CreateOptions{DryRun: dry})
		if err := errors.Join(err, in.Delete(ctx, p.Owner.Name, metav1.DeleteOptions{DryRun: dry})); err != nil {
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
