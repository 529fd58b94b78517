package e2e

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Metadata is also written through subresources, and on objects that are being deleted. Weir's
// finalizer stays on an object until its deletion has been carried out, and owners are judged.
func TestMetadataIsJudgedWhereverItIsWritten(t *testing.T) {
	t.Parallel()
	w := newEnforced(t, replace)
	policy := w.policy("DeletionPolicy", `
  match:
    resources: [{apiGroups: [""], resources: [configmaps]}, {apiGroups: [apps], resources: [deployments]}]
    HERE
  propagation: {default: Foreground}`)
	w.policy("OwnerReferencePolicy", `
  match:
    resources: [{apiGroups: [""], resources: [namespaces]}]
    HERE
  rules: {dangling: Deny}`)
	w.awaitFinalizerAdded("cm")
	w.make(`
		web web
		cm  boss
		sec child owners=(boss!block) finalizers=(example.com/hold)
	`)
	const none = `{"metadata":{"finalizers":null}}`

	w.mustKubectl("patch", "deployment", w.of("web").name, "--subresource=status", "--type=merge", "-p", none)
	w.awaitFinalizers("web", finalizer)
	// The API server itself takes no metadata of a custom resource's status.
	w.mustKubectl("patch", "deletionpolicy", policy, "--subresource=status", "--type=merge", "-p", `{"metadata":{"finalizers":["example.com/hold"]}}`)
	if f := w.policyNow("DeletionPolicy", policy).GetFinalizers(); len(f) > 0 {
		t.Errorf("the status of a custom resource writes finalizers: %v", f)
	}

	w.delete("boss", background)
	w.awaitForeground("boss")
	if out := w.mustKubectl("patch", "configmap", "boss", "--type=merge", "-p", none); !strings.Contains(out, "finalizer weir.dev/propagation stays") {
		t.Errorf("the user is told nothing: %s", out)
	}
	w.awaitFinalizers("boss", finalizer)
	w.patch("child", none)
	w.awaitGone("boss", "child")

	ns, err := w.typed.CoreV1().Namespaces().Get(t.Context(), w.namespace, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ns.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "gone", UID: "gone"}}
	_, err = w.typed.CoreV1().Namespaces().Finalize(t.Context(), ns, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
	if err == nil || !strings.Contains(err.Error(), "gone") {
		t.Errorf("an owner that is written through namespaces/finalize is not judged: %v", err)
	}
}
