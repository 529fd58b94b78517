package e2e

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/e2e/plane"
	"github.com/weir-dev/weir/e2e/weir"
)

// home is the namespace that Weir runs in, in tests that delete it.
const home = "weir-home"

// TestNamespaceThatWeirRunsInWaitsForAnotherToFinish: a Weir that is the only controller of
// namespaces does not delete itself. It says so, goes on with all else, and whoever comes after it
// finishes.
func TestNamespaceThatWeirRunsInWaitsForAnotherToFinish(t *testing.T) {
	t.Parallel()
	w := newCluster(t, plane.Options{Controllers: plane.WithoutCollectors})
	w.startAtHome(replace)
	pod := metav1.ObjectMeta{Name: "weir-controller", Namespace: home}
	if _, err := w.typed.CoreV1().ConfigMaps(home).Create(w.Context(), &corev1.ConfigMap{ObjectMeta: pod}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := w.typed.CoreV1().Namespaces().Delete(w.Context(), home, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.until("the namespace says why it stays", func(ctx context.Context) (bool, error) {
		ns, err := w.typed.CoreV1().Namespaces().Get(ctx, home, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		for _, c := range ns.Status.Conditions {
			if c.Type == "WeirDraining" {
				return strings.Contains(c.Message, "Weir runs in this namespace"), nil
			}
		}
		return false, nil
	})
	other := w.newNamespace()
	if err := w.typed.CoreV1().Namespaces().Delete(w.Context(), other, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.until("another namespace is gone", func(ctx context.Context) (bool, error) {
		_, err := w.typed.CoreV1().Namespaces().Get(ctx, other, metav1.GetOptions{})
		return apierrors.IsNotFound(err), except(err, apierrors.IsNotFound)
	})
	if _, err := w.typed.CoreV1().ConfigMaps(home).Get(w.Context(), pod.Name, metav1.GetOptions{}); err != nil {
		t.Errorf("what runs in the namespace: %v", err)
	}

	w.weir.Kill()
	w.startWeir() // one that does not run there
	w.awaitHomeGone()
}

// startAtHome starts a controller that takes the Service of its webhooks to be in the namespace
// home, where its CA and its token are, and returns when it has written the webhook configurations
// of a policy.
func (w *fixture) startAtHome(m mode) {
	w.Helper()
	if err := installCRDs(w.Context(), w.plane); err != nil {
		w.Fatal(err)
	}
	if _, err := w.typed.CoreV1().Namespaces().Create(w.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: home}}, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
	kubeconfig := w.kubeconfigOf(weirUser)
	w.weir = w.runWeir(weir.Options{Kubeconfig: kubeconfig, Name: "at-home", Alone: true, Flags: []string{"--mode", string(m), "--self-users", weirUser, "--webhook-service", home + "/weir-webhook"}})
	// It is about nothing that is there: no process serves the webhook.
	w.policyNamed("DeletionPolicy", "some", `
  match: {resources: [{apiGroups: [""], resources: [podtemplates]}]}
  protection: {confirmation: Required}
  failurePolicy: Fail
`)
	w.until("the webhook configuration is written, and owned", func(ctx context.Context) (bool, error) {
		c, err := w.typed.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(ctx, "weir", metav1.GetOptions{})
		return err == nil && len(c.OwnerReferences) == 1 && c.OwnerReferences[0].Name == home, except(err, apierrors.IsNotFound)
	})
}

func (w *fixture) awaitHomeGone() {
	w.Helper()
	w.until("the namespace is gone", func(ctx context.Context) (bool, error) {
		_, err := w.typed.CoreV1().Namespaces().Get(ctx, home, metav1.GetOptions{})
		return apierrors.IsNotFound(err), except(err, apierrors.IsNotFound)
	})
	w.until("the webhook configuration is gone", func(ctx context.Context) (bool, error) {
		_, err := w.typed.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(ctx, "weir", metav1.GetOptions{})
		return apierrors.IsNotFound(err), except(err, apierrors.IsNotFound)
	})
}

func except(err error, expected func(error) bool) error {
	if expected(err) {
		return nil
	}
	return err
}
