package e2e

import (
	"context"
	"strings"
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestDeletesAndEvictionsAreProtectedApart: of one pod evictions are refused, of another deletes.
// The other request passes.
func TestDeletesAndEvictionsAreProtectedApart(t *testing.T) {
	eachMode(t, func(t *testing.T, w *fixture) {
		w.make(`
			po stays
			po moves
		`)
		for name, request := range map[string]string{"stays": "Evict", "moves": "Delete"} {
			w.policyNamed("DeletionPolicy", name+"-"+w.namespace, `
  match:
    resources: [{apiGroups: [""], resources: [pods]}]
    resourceNames: [`+w.of(name).name+`]
    HERE
  protection: {requests: [`+request+`], confirmation: Required}`)
		}
		evict := func(name string, dryRun ...string) error {
			return w.typed.CoreV1().Pods(w.namespace).EvictV1(w.Context(), &policyv1.Eviction{
				ObjectMeta:    metav1.ObjectMeta{Name: w.of(name).name},
				DeleteOptions: &metav1.DeleteOptions{DryRun: dryRun},
			})
		}
		w.awaitRefusal("delete", "pod", "moves")
		w.until("evictions are refused", func(context.Context) (bool, error) {
			err := evict("stays", metav1.DryRunAll)
			return err != nil && strings.Contains(err.Error(), "may not be deleted without confirmation"), nil
		})
		if err := evict("moves"); err != nil {
			t.Error(err)
		}
		w.mustKubectl("delete", "pod", "stays")
		w.awaitGone("moves", "stays")
	})
}
