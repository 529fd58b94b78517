//go:build full

package e2e

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/weir-dev/weir/e2e/plane"
)

// TestWebhookFollowsObjectsOnceAPolicyCountsThem: a policy that has it know kinds has it follow no
// objects. With one that counts them it refuses until it knows them, and then for what it knows:
// from the first refusal on no delete goes through.
func TestWebhookFollowsObjectsOnceAPolicyCountsThem(t *testing.T) {
	t.Parallel()
	w, _ := newPaired(t, replace, plane.Options{})
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
	m, err := w.hook.Metrics(w.Context())
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
