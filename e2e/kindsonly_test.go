//go:build full

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/weir-dev/weir/e2e/plane"
)

// TestWebhookFollowsObjectsOnceAPolicyCountsThem: a policy that has it know kinds has it follow no
// objects. With one that counts them it refuses until it knows them, and then for what it knows:
// from the first refusal on no delete goes through.
func TestWebhookFollowsObjectsOnceAPolicyCountsThem(t *testing.T) {
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
	hook := w.runWeir(hookOptions(w.plane, kubeconfig, "hook", url, port))
	if w.weir, err = startController(context.WithoutCancel(w.Context()), w.plane, replace, url); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.weir.Kill)
	w.make(`
		cm  owner
		sec owned owners=(owner)
	`)
	w.policy("OwnerReferencePolicy", `
  match:
    resources: [{apiGroups: [""], resources: [secrets]}]
    HERE
  blockOwnerDeletion: RequirePermission`)
	lacks := w.as("lacks-"+w.namespace, mayDoSecrets)
	blocking := w.of("owner").reference()
	blocking.BlockOwnerDeletion = new(true)
	w.until("blocking is refused for its kind", func(context.Context) (bool, error) {
		err := w.tryOwned(lacks, "s", blocking)
		return err != nil && strings.Contains(err.Error(), "may not update configmaps/finalizers"), nil
	})
	m, err := hook.Metrics(w.Context())
	if err != nil || m.Sum("weir_graph_kinds", "state", "synced") != 2 || m.Sum("weir_graph_kinds") != 2 {
		t.Fatalf("%v kinds are followed, want 2: %v", m.Sum("weir_graph_kinds"), err)
	}
	w.policy("DeletionPolicy", `
  match:
    resources: [{apiGroups: [""], resources: [configmaps]}]
    HERE
  failurePolicy: Fail
  protection: {maxDependents: 0}`)
	refused := false
	w.until("it is refused for what is known", func(context.Context) (bool, error) {
		out, err := w.kubectl("delete", "configmap", "owner", "--dry-run=server")
		if err == nil && refused {
			return false, errors.New("it is let through, and was refused before")
		}
		refused = err != nil
		return strings.Contains(out, "1 object would also be deleted"), nil
	})
	w.alive("owner", "owned")
}
