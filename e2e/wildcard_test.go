package e2e

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const everything = `
  match: {resources: [{apiGroups: ["*"], resources: ["*"]}]}`

// TestPoliciesAboutEverythingLeaveTheClusterAtWork: a '*' in every kind of policy.
func TestPoliciesAboutEverythingLeaveTheClusterAtWork(t *testing.T) {
	inModes(t, either(1), newAlone, func(_ *testing.T, w *fixture) {
		w.policyNamed("DeletionPolicy", "all", everything+"\n  propagation: {default: Foreground}")
		// Of Fail more must not come than of Ignore, as long as Weir answers; and when it does not,
		// what the last step shows.
		w.policyNamed("DeletionPolicy", "guard", everything+"\n  protection: {maxDependents: 1000}\n  failurePolicy: Fail")
		w.policyNamed("OwnerReferencePolicy", "all", everything+"\n  rules: {dangling: Deny, namespacedOwner: Deny, cycle: Deny}\n  failurePolicy: Fail")
		w.policyNamed("DrainPolicy", "all", `
  waves:
  - {name: pods, resources: [{apiGroups: [""], resources: [pods]}]}
  - {name: rest, resources: [{apiGroups: ["*"], resources: ["*"]}]}`)
		w.awaitFinalizerAdded("cm")
		w.questionsAreAnswered()
		w.rolloutGoesOn()
		w.usageIsShown()
		w.nodeComesAndGoes()
		w.namespaceComesAndGoes()
		w.until("back-fill ends", func(ctx context.Context) (bool, error) {
			metrics, err := w.weir.Metrics(ctx)
			return err == nil && metrics.Sum("weir_backfill_last_success_timestamp_seconds") > 0 && metrics.Sum("weir_backfill_objects", "state", "failed") == 0, nil
		})
		w.glassBreaks()
	})
}

// Delegated authorization and authentication are objects that are made and kept nowhere.
func (w *fixture) questionsAreAnswered() {
	w.Helper()
	w.mustKubectl("auth", "can-i", "list", "pods")
	w.mustKubectl("auth", "whoami")
	w.mustKubectl("get", "componentstatuses")
	w.mustKubectl("auth", "can-i", "list", "secrets", "--as", "somebody", "--as-group", "system:masters")
}

func (w *fixture) rolloutGoesOn() {
	w.Helper()
	w.mustKubectl("create", "deployment", "web", "--image=example.com/web:1", "--replicas=2")
	w.mustKubectl("rollout", "status", "deployment/web", "--timeout=60s")
	w.mustKubectl("set", "image", "deployment/web", "web=example.com/web:2")
	w.mustKubectl("rollout", "status", "deployment/web", "--timeout=60s")
	w.mustKubectl("delete", "deployment", "web", "--timeout=60s")
}

// The metrics that kubectl top shows are objects of an aggregated API, which can only be read.
func (w *fixture) usageIsShown() {
	w.Helper()
	const path = "/apis/metrics.k8s.io"
	mux := http.NewServeMux()
	mux.HandleFunc("/apis", answers(`{"kind":"APIGroupList","apiVersion":"v1","groups":[
		{"name":"metrics.k8s.io","versions":[{"groupVersion":"metrics.k8s.io/v1beta1","version":"v1beta1"}]}]}`))
	mux.HandleFunc(path+"/v1beta1", answers(`{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"metrics.k8s.io/v1beta1","resources":[
		{"name":"pods","singularName":"","namespaced":true,"kind":"PodMetrics","verbs":["get","list"]},
		{"name":"nodes","singularName":"","namespaced":false,"kind":"NodeMetrics","verbs":["get","list"]}]}`))
	mux.HandleFunc(path+"/v1beta1/namespaces/"+w.namespace+"/pods", answers(`{"kind":"PodMetricsList","apiVersion":"metrics.k8s.io/v1beta1","items":[
		{"metadata":{"name":"busy","namespace":"`+w.namespace+`"},"containers":[{"name":"c","usage":{"cpu":"12m","memory":"34Mi"}}]}]}`))
	server := httptest.NewTLSServer(mux)
	w.Cleanup(server.Close)
	w.aggregateAs("metrics.k8s.io", "v1beta1", server.Listener.Addr().(*net.TCPAddr).Port)
	w.until("kubectl top shows what a pod uses", func(context.Context) (bool, error) {
		out, err := w.kubectl("top", "pods")
		return err == nil && strings.Contains(out, "12m") && strings.Contains(out, "34Mi"), nil
	})
}

func (w *fixture) nodeComesAndGoes() {
	w.Helper()
	name := "node-" + w.namespace
	if _, err := w.typed.CoreV1().Nodes().Create(w.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
	leases := w.typed.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	lease, err := leases.Create(w.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) { // kwok holds one for each node
		lease, err = leases.Get(w.Context(), name, metav1.GetOptions{})
	}
	if err != nil {
		w.Fatal(err)
	}
	if len(lease.Finalizers) > 0 {
		w.Errorf("the Lease has finalizers %v", lease.Finalizers)
	}
	w.mustKubectl("delete", "node", name, "--timeout=60s")
	if err := leases.Delete(w.Context(), name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		w.Error(err)
	}
}

func (w *fixture) namespaceComesAndGoes() {
	w.Helper()
	name := w.namespace + "-short"
	w.mustKubectl("create", "namespace", name)
	w.mustKubectl("create", "configmap", "one", "-n", name)
	w.mustKubectl("delete", "namespace", name, "--timeout=90s")
}

// The way past a webhook must not lead through it.
func (w *fixture) glassBreaks() {
	w.Helper()
	configurations := w.typed.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	foreign, err := configurations.Create(w.Context(), &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "foreign"}}, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	if len(foreign.Finalizers) > 0 {
		w.Errorf("a webhook configuration has finalizers %v", foreign.Finalizers)
	}
	w.weir.Kill()
	w.breakGlass()
	w.mustKubectl("delete", "validatingwebhookconfiguration", "weir", "foreign", "--timeout=30s")
	w.mustKubectl("delete", "mutatingwebhookconfiguration", "weir", "--timeout=30s")
	for _, name := range []string{"weir", "foreign"} {
		if _, err := configurations.Get(w.Context(), name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			w.Errorf("%s is still there: %v", name, err)
		}
	}
	// And nothing stands between the user and what got the finalizer but that, which weir release
	// takes off.
	if out, err := w.kubectl("create", "configmap", fmt.Sprintf("after-%s", w.namespace)); err != nil {
		w.Errorf("%v\n%s", err, out)
	}
}
