package chart_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/weir-dev/weir/e2e/plane"
)

// The arguments in the chart's Deployments are flags of the binary, and the roles are enough: under its ServiceAccount
// each process becomes ready, the CA is made, and the controller writes the webhook configurations.
func TestProcessesRunWithTheChartsArgumentsAndRights(t *testing.T) {
	ctx := t.Context()
	helm(t, "install", "weir", "weir", "--wait", "--timeout", "2m", "--set", "policies.protection=true")
	// The binary is stopped first: it would write the configurations again.
	defer func() {
		helm(t, "uninstall", "weir", "--no-hooks")
		hooks := shared.client.AdmissionregistrationV1()
		for _, err := range []error{
			hooks.MutatingWebhookConfigurations().DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}),
			hooks.ValidatingWebhookConfigurations().DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}),
		} {
			if err != nil {
				t.Error(err)
			}
		}
	}()
	for _, component := range []string{"controller", "webhook"} {
		d, err := shared.client.AppsV1().Deployments(namespace).Get(ctx, "weir-"+component, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer launch(t, component, d.Spec.Template.Spec)()
	}
	until(t, "the CA is made and the webhook configurations are written", func(ctx context.Context) (bool, error) {
		if _, err := shared.client.CoreV1().Secrets(namespace).Get(ctx, "weir-ca", metav1.GetOptions{}); err != nil {
			return false, ignoring(err, apierrors.IsNotFound)
		}
		_, err := shared.client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(ctx, "weir", metav1.GetOptions{})
		return err == nil, ignoring(err, apierrors.IsNotFound)
	})
}

// launch runs what a pod would, as whom it would, with addresses and files of this machine, and returns what ends it.
func launch(t *testing.T, component string, pod corev1.PodSpec) func() {
	t.Helper()
	_, kubeconfig, err := shared.plane.UserConfig("system:serviceaccount:"+namespace+":"+pod.ServiceAccountName, "system:serviceaccounts", "system:serviceaccounts:"+namespace)
	if err != nil {
		t.Fatal(err)
	}
	// Protection alone: it puts no finalizer on anything, so that nothing is to be released afterwards.
	policies := t.TempDir()
	protection, err := os.ReadFile(filepath.Join(charts, "weir", "files", "policies", "protection.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(policies, "protection.yaml"), protection, 0o600); err != nil {
		t.Fatal(err)
	}
	health, err := plane.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	args := append(pod.Containers[0].Args, "--kubeconfig", kubeconfig, "--policy-dir", policies,
		"--metrics-bind-address", "0", "--health-probe-bind-address", fmt.Sprintf("127.0.0.1:%d", health)) // the last one of a flag wins
	if component == "webhook" {
		port, err := plane.FreePort()
		if err != nil {
			t.Fatal(err)
		}
		args = append(args, "--webhook-bind-address", fmt.Sprintf("127.0.0.1:%d", port))
	}
	p := plane.Command(component, shared.weir, filepath.Join(t.TempDir(), "log"), args...)
	if err := p.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	until(t, component+" is ready", func(ctx context.Context) (bool, error) {
		select {
		case <-p.Exited():
			return false, fmt.Errorf("it ended: %w; its log ends with\n%s", p.Wait(), p.Tail(20))
		default:
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/readyz", health), nil)
		if err != nil {
			return false, err
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return false, nil // not yet
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK, nil
	})
	return p.Kill
}

// The hook's Job is not run here, for its pod is empty; that its arguments are flags can be asked.
func TestArgumentsOfEveryValueSetAreFlags(t *testing.T) {
	asked := 0
	for _, values := range valueSets(t) {
		for _, o := range manifests(t, helm(t, "template", "weir", "weir", "--kube-version", "1.36.3", "--values", values)) {
			spec, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
			if len(spec) == 0 {
				continue
			}
			asked++
			args := append(texts(spec[0].(map[string]any)["args"]), "--help")
			if out, err := exec.CommandContext(t.Context(), shared.weir, args...).CombinedOutput(); err != nil {
				t.Errorf("%s: %s %s: %v\n%s", values, o.GetKind(), o.GetName(), err, out)
			}
		}
	}
	if asked < 15 {
		t.Errorf("asked about %d workloads only", asked)
	}
}

func texts(v any) []string {
	var out []string
	for _, s := range v.([]any) {
		out = append(out, s.(string))
	}
	return out
}
