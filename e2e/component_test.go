//go:build full

package e2e

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestWhyTellsWhetherTheComponentRuns: a finalizer whose component is scaled to nothing, and is gone later; and one whose leader
// has not been there.
func TestWhyTellsWhetherTheComponentRuns(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.make(`
		deploy backup-controller
		cm     held  finalizers=(kubernetes.io/pv-protection)
	`)
	w.patch("backup-controller", `{"spec": {"replicas": 0}}`)
	held := w.made["held"]
	_, err := w.at(held).Patch(w.Context(), "held", types.MergePatchType, []byte(`{"metadata": {"finalizers": ["kubernetes.io/pv-protection", "example.com/backup"]}}`),
		metav1.PatchOptions{FieldManager: "backup-controller"})
	if err != nil {
		t.Fatal(err)
	}
	w.delete("held", background)
	w.mustSay(w.mustAsk("why", "cm", "held"), "The finalizer example.com/backup holds it", `written by the field manager "backup-controller"`,
		"the Deployment "+w.namespace+`/backup-controller, which runs something that is named "backup-controller", has 0 of 0 pods ready: no component may be running that removes it`,
		"the Lease kube-system/kube-controller-manager, by which its component says that it is there, ")
	w.delete("backup-controller", background)
	w.awaitGone("backup-controller")
	w.mustSay(w.mustAsk("why", "cm", "held"), `no Deployment, StatefulSet or DaemonSet in the cluster runs something that is named "backup-controller": the component may be gone`)
	w.unfinalize("held")
}
