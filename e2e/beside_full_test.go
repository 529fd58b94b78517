//go:build full

package e2e

import (
	"context"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/e2e/plane"
)

// TestReplaceModeEndsWhenAnotherCollectorBegins: as after an upgrade of the control plane that
// wrote the flags again.
func TestReplaceModeEndsWhenAnotherCollectorBegins(t *testing.T) {
	t.Parallel()
	w := newCluster(t, plane.Options{})
	w.startWeir()
	w.make(`
		cm boss
		cm leaf  owners=(boss)
	`)
	w.delete("boss", background)
	w.awaitGone("boss", "leaf")
	canary := w.canary()
	system := *w
	system.namespace = metav1.NamespaceSystem
	w.mustSay(system.mustAsk("orphans"), "No object in the namespace kube-system")

	// It bears on nothing, and comes again when a user deletes it or makes it useless.
	configs := w.typed.CoreV1().ConfigMaps(metav1.NamespaceSystem)
	again := func(what string) {
		t.Helper()
		w.until("there is another canary where one was "+what, func(context.Context) (bool, error) {
			return w.canary().UID != canary.UID, nil
		})
		canary = w.canary()
	}
	if _, err := configs.Patch(t.Context(), collectorCanary, "application/merge-patch+json",
		[]byte(`{"metadata":{"ownerReferences":null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	again("changed")
	if err := configs.Delete(t.Context(), collectorCanary, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	again("deleted")

	if err := w.plane.StartController(t.Context(), plane.CollectorOnly); err != nil {
		t.Fatal(err)
	}
	w.mustEndBesideAnother(w.weir)
	const why = "another garbage collector works in this cluster"
	if text, err := w.weir.Output(); err != nil || !strings.Contains(text, why) {
		t.Errorf("it did not say why (%v); its log ends with\n%s", err, w.weir.Tail(5))
	}
}
