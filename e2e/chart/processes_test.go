package chart_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/weir-dev/weir/e2e/plane"
)

// The arguments in the chart's Deployments are flags of the binary, and the roles are enough: under
// its ServiceAccount each process becomes ready, the CA is made, and the controller writes the
// webhook configurations. Metrics are served to who verifies as the chart's ServiceMonitor says;
// network policies let out to where this API server is.
func TestProcessesRunWithTheChartsArgumentsAndRights(t *testing.T) {
	ctx := t.Context()
	port := sayWhereTheAPIServerIs(t)
	helm(t, "install", "weir", "weir", "--wait", "--timeout", "2m", "--set", "policies.protection=true")
	// The binary is stopped first: it would write the configurations again.
	defer func() {
		helm(t, "uninstall", "weir", "--no-hooks")
		hooks := shared.client.AdmissionregistrationV1()
		if err := hooks.ValidatingAdmissionPolicyBindings().Delete(ctx, "weir-guard", metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
		until(t, "the webhook configurations are guarded no more", func(ctx context.Context) (bool, error) {
			return errors.Join(
				hooks.MutatingWebhookConfigurations().DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}),
				hooks.ValidatingWebhookConfigurations().DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}),
			) == nil, nil
		})
		// The controller was killed, and weir doctor would call its Lease one that nobody renews.
		if err := shared.client.CoordinationV1().Leases(namespace).Delete(ctx, "weir-controller", metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	}()
	letsOutTo(t, port, "443")
	metrics := map[string]string{}
	for _, component := range []string{"controller", "webhook"} {
		d, err := shared.client.AppsV1().Deployments(namespace).Get(ctx, "weir-"+component, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		stop, address := launch(t, component, d.Spec.Template.Spec)
		defer stop()
		metrics[component] = address
	}
	until(t, "the CA is made and the webhook configurations are written", func(ctx context.Context) (bool, error) {
		if _, err := shared.client.CoreV1().Secrets(namespace).Get(ctx, "weir-ca", metav1.GetOptions{}); err != nil {
			return false, ignoring(err, apierrors.IsNotFound)
		}
		_, err := shared.client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(ctx, "weir", metav1.GetOptions{})
		return err == nil, ignoring(err, apierrors.IsNotFound)
	})
	trust := monitored(t)
	for component, address := range metrics {
		until(t, "the metrics of the "+component+" are served under a certificate that can be verified", func(context.Context) (bool, error) {
			conn, err := tls.Dial("tcp", address, trust)
			if err != nil {
				return false, nil //nolint:nilerr // not yet: the certificate is made meanwhile
			}
			return true, conn.Close()
		})
	}
}

// monitored is how the chart's ServiceMonitor has Prometheus verify whom it reads metrics from.
func monitored(t *testing.T) *tls.Config {
	t.Helper()
	for _, o := range manifests(t, helm(t, "template", "weir", "weir", "--set", "metrics.serviceMonitor.enabled=true")) {
		if o.GetKind() != "ServiceMonitor" {
			continue
		}
		endpoints, _, _ := unstructured.NestedSlice(o.Object, "spec", "endpoints")
		by, _, _ := unstructured.NestedMap(endpoints[0].(map[string]any), "tlsConfig")
		name, _, _ := unstructured.NestedString(by, "ca", "secret", "name")
		key, _, _ := unstructured.NestedString(by, "ca", "secret", "key")
		server, _, _ := unstructured.NestedString(by, "serverName")
		secret, err := shared.client.CoreV1().Secrets(namespace).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(secret.Data[key]) || server == "" {
			t.Fatalf("nobody can be verified by %v", by)
		}
		return &tls.Config{RootCAs: roots, ServerName: server}
	}
	t.Fatal("there is no ServiceMonitor")
	return nil
}

// sayWhereTheAPIServerIs writes the EndpointSlice of the Service kubernetes, and returns the port
// in it. An API server does so itself, but not of a loopback address.
func sayWhereTheAPIServerIs(t *testing.T) string {
	t.Helper()
	at, err := url.Parse(shared.plane.Config.Host)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.ParseInt(at.Port(), 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	client := shared.client.DiscoveryV1().EndpointSlices(metav1.NamespaceDefault)
	made, err := client.Create(t.Context(), &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{GenerateName: "kubernetes-", Labels: map[string]string{discoveryv1.LabelServiceName: "kubernetes"}},
		AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"192.0.2.1"}}},
		Ports: []discoveryv1.EndpointPort{{Name: new("https"), Port: new(int32(port))}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Delete(context.WithoutCancel(t.Context()), made.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	return at.Port()
}

// letsOutTo checks that Helm has found the ports of the API server.
func letsOutTo(t *testing.T, want ...string) {
	t.Helper()
	all, err := shared.client.NetworkingV1().NetworkPolicies(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(all.Items) != 4 {
		t.Errorf("there are %d network policies, want 4", len(all.Items))
	}
	for _, p := range all.Items {
		var ports []string
		for _, rule := range p.Spec.Egress {
			for _, port := range rule.Ports {
				ports = append(ports, port.Port.String())
			}
		}
		there := slices.Clone(want)
		if p.Name == "weir-controller" {
			there = append(there, "webhook") // it calls the webhook when that does not answer the API server
		}
		slices.Sort(ports)
		slices.Sort(there)
		if !slices.Equal(ports, there) {
			t.Errorf("%s lets out to %v, want %v", p.Name, ports, there)
		}
	}
}

// launch runs what a pod would, as whom it would, with addresses and files of this machine, and
// returns what ends it, and where its metrics are. The API server does not reach the webhook's
// Service, behind which is no pod.
func launch(t *testing.T, component string, pod corev1.PodSpec) (stop func(), metrics string) {
	t.Helper()
	_, kubeconfig, err := shared.plane.UserConfig("system:serviceaccount:"+namespace+":"+pod.ServiceAccountName, "system:serviceaccounts", "system:serviceaccounts:"+namespace)
	if err != nil {
		t.Fatal(err)
	}
	// Protection alone: it puts no finalizer on anything, so that nothing is to be released
	// afterwards.
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
	port, err := plane.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	metrics = fmt.Sprintf("127.0.0.1:%d", port)
	args := append(pod.Containers[0].Args, "--kubeconfig", kubeconfig, "--policy-dir", policies,
		"--metrics-bind-address", metrics, "--health-probe-bind-address", fmt.Sprintf("127.0.0.1:%d", health)) // the last one of a flag wins
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
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/readyz?exclude=enforced", health), nil)
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
	return p.Kill, metrics
}

func texts(v any) []string {
	var out []string
	for _, s := range v.([]any) {
		out = append(out, s.(string))
	}
	return out
}
