package e2e

import (
	"context"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/e2e/plane"
)

// TestRolloutGoesThroughWhereDeletesAreToBeConfirmed: no one confirms what Kubernetes' own
// controllers delete.
func TestRolloutGoesThroughWhereDeletesAreToBeConfirmed(t *testing.T) {
	t.Parallel()
	w, _ := newPaired(t, companion, plane.Options{Controllers: plane.All, Scheduler: true, Kwok: true})
	w.policy("DeletionPolicy", `
  match: {resources: [{apiGroups: [""], resources: [pods]}, {apiGroups: [apps], resources: [replicasets]}]}
  protection: {confirmation: Required, inCascades: Ignore}`)
	w.mustKubectl("create", "deployment", "old", "--image=example.com/old:1")
	w.mustKubectl("rollout", "status", "deployment/old", "--timeout=60s")
	for _, kind := range []string{"pods", "replicasets"} {
		w.until("a user is refused to delete "+kind, func(context.Context) (bool, error) {
			out, err := w.kubectl("delete", kind, "-l", "app=old", "--wait=false", "--dry-run=server")
			return err != nil && strings.Contains(out+err.Error(), "may not be deleted without confirmation"), nil
		})
	}
	w.rolloutGoesOn()
	// Without a history the deployment controller deletes ReplicaSets, too.
	w.mustKubectl("patch", "deployment", "old", "-p", `{"spec":{"revisionHistoryLimit":0}}`)
	w.mustKubectl("set", "image", "deployment/old", "old=example.com/old:2")
	w.mustKubectl("rollout", "status", "deployment/old", "--timeout=60s")
	w.until("one ReplicaSet is left", func(ctx context.Context) (bool, error) {
		list, err := w.typed.AppsV1().ReplicaSets(w.namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=old"})
		return err == nil && len(list.Items) == 1, err
	})
}
