package e2e

import (
	"context"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
)

// TestHistoryTellsWhoAskedAndWhichPolicy: the webhook saw the request, the controller carried the
// policy out.
func TestHistoryTellsWhoAskedAndWhichPolicy(t *testing.T) {
	eachMode(t, func(t *testing.T, w *fixture) {
		policy := w.policy("DeletionPolicy", strings.ReplaceAll(configMaps, "%s", "Foreground")+"\n  protection: {maxDependents: 100}")
		w.awaitFinalizerAdded("cm")
		w.make(`
			cm  owner
			sec one    owners=(owner!block)
			sec two    owners=(owner)
		`)
		w.until("the webhook has the graph", func(context.Context) (bool, error) {
			out, err := w.kubectl("delete", "configmap", "owner", "--dry-run=server")
			return strings.Contains(out, "2 objects are also deleted"), err
		})
		kubeconfig, err := restricted(w.Context(), w.plane, "anna-"+w.namespace, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"})
		if err != nil {
			t.Fatal(err)
		}
		w.mustKubectl("delete", "configmap", "owner", "--kubeconfig", kubeconfig)
		w.awaitGone("owner", "one", "two")
		w.awaitEvent("owner", "DeletionRequested")
		says := []string{"ConfigMap " + w.namespace + "/owner: deleted at the request of anna-" + w.namespace + " (propagation Background; policy " + policy + ": Foreground)"}
		if w.mode == replace {
			w.awaitEvent("owner", "Cascade")
			says = append(says, "2 objects that it owned, directly or not, were deleted by garbage collection within ", ": 2 secrets; policy "+policy+": Foreground")
		}
		w.mustSay(w.mustAsk("history", "cm", "owner"), says...)
		w.mustSay(w.mustAsk("why", "cm", "owner"), "configmaps/"+w.namespace+"/owner is not there", "at the request of anna-"+w.namespace)
		if w.mode == replace {
			historyOfOneCause(w)
		}
	})
}

// historyOfOneCause: what one command deleted is one line.
func historyOfOneCause(w *fixture) {
	w.Helper()
	w.make(`
		cm  a
		cm  b
		cm  c
		cm  d
		sec of-a owners=(a)
		sec of-b owners=(b)
		sec of-c owners=(c)
		sec of-d owners=(d)
	`)
	w.mustKubectl("delete", "configmap", "a", "b", "c", "d")
	w.awaitGone("of-a", "of-b", "of-c", "of-d")
	for _, owner := range []string{"a", "b", "c", "d"} {
		w.awaitEvent(owner, "Cascade")
	}
	w.mustSay(w.mustAsk("history"), " and 1 more: ",
		"4 objects that they owned, directly or not, were deleted by garbage collection: 4 secrets")
}
