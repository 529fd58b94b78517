//go:build full

package e2e

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestNamespacesGoTogetherAsPlanned: what is held in the one holds nothing in the other. What the
// API server lets nobody delete is not planned.
func TestNamespacesGoTogetherAsPlanned(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	other := w.beside()
	w.make("cm held finalizers=(example.com/hold)")
	other.make("cm free")
	out := w.mustAsk("plan", "namespaces", w.namespace, other.namespace, "kube-system")
	w.mustSay(out, "- namespaces/"+w.namespace+": after that\n", "\n- namespaces/"+other.namespace+"\n", "✗ namespaces/kube-system: the API server refuses the delete",
		"Plan: the API server refuses 1 of 3 deletes; ")
	w.mustSay(w.mustAsk("tree", "namespace", w.namespace), "▶ namespaces/"+w.namespace+": ", "\n  · configmaps/held: finalizers example.com/hold\n")
	for _, name := range []string{"kube-system", "kube-public", "default"} {
		err := w.typed.CoreV1().Namespaces().Delete(w.Context(), name, metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
		if !apierrors.IsForbidden(err) {
			t.Errorf("the API server says of the delete of %s: %v", name, err)
		}
	}
	w.drop()
	other.awaitDropped(other.drop())
	if left, err := w.left(w.Context(), []string{"held"}); err != nil || len(left) != 1 {
		t.Errorf("left of the other one: %v, %v; want what is held", left, err)
	}
	w.unfinalize("held")
}
