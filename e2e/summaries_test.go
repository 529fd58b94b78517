//go:build full

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/weir-dev/weir/e2e/plane"
)

// TestDeleteSummariesCanBeTurnedOff: a webhook that runs with --delete-summaries=false counts what
// would also be deleted, and refuses for it, but says nothing of it at a delete that is only tried,
// or is refused for something else. The same webhook without the flag does.
func TestDeleteSummariesCanBeTurnedOff(t *testing.T) {
	t.Parallel()
	w := newCluster(t, plane.Options{})
	if err := installCRDs(w.Context(), w.plane); err != nil {
		t.Fatal(err)
	}
	port, err := plane.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := identity(w.Context(), w.plane, hookUser)
	if err != nil {
		t.Fatal(err)
	}
	url := fmt.Sprintf("https://localhost:%d", port)
	silent := w.runWeir(hookOptions(w.plane, kubeconfig, "silent", url, port, "--delete-summaries=false"))
	if w.weir, err = startController(context.WithoutCancel(w.Context()), w.plane, replace, url); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.weir.Kill)
	w.policy("DeletionPolicy", `
  match:
    resources: [{apiGroups: [""], resources: [configmaps]}]
    HERE
  protection: {maxDependents: 1}
  propagation: {default: Background, allowed: [Background]}`)
	w.make(`
		cm  small
		sec one    owners=(small)
		cm  large
		sec two    owners=(large)
		sec three  owners=(large)
	`)
	w.until("it is known what falls with an object", func(context.Context) (bool, error) {
		out, err := w.kubectl("delete", "configmap", "large", "--dry-run=server")
		return err != nil && strings.Contains(out, "2 objects would also be deleted"), nil
	})
	says := `if configmaps "small" in namespace "` + w.namespace + `" is deleted, 1 object is also deleted: 1 secrets`
	tried := []string{"delete", "configmap", "small", "--dry-run=server"}
	if out := w.mustKubectl(tried...); strings.Contains(out, "also deleted") {
		t.Errorf("a delete that is tried:\n%s", out)
	}
	if out, err := w.kubectl("delete", "configmap", "small", "--cascade=foreground"); err == nil || !strings.Contains(out, "denied the request") || strings.Contains(out, "also deleted") {
		t.Errorf("a delete that is refused (%v):\n%s", err, out)
	}
	silent.Kill()
	w.runWeir(hookOptions(w.plane, kubeconfig, "telling", url, port))
	w.until("without the flag it is told", func(context.Context) (bool, error) {
		out, _ := w.kubectl(tried...) // it is refused until the webhook answers
		return strings.Contains(out, says), nil
	})
}
