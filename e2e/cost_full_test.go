//go:build full

package e2e

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/weir-dev/weir/e2e/plane"
	"github.com/weir-dev/weir/e2e/weir"
)

// TestEachAbsentOwnerIsLookedUpOnce: in the reference it depends on the owners in
// between, of which it remembers 500 (RB 11.25).
func TestEachAbsentOwnerIsLookedUpOnce(t *testing.T) {
	t.Parallel()
	const n, each = 1000, 3
	w := newCluster(t, plane.Options{})
	owners := make([]metav1.OwnerReference, n)
	for i := range owners {
		owners[i] = metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: fmt.Sprintf("absent-%d", i), UID: uuid.NewUUID()}
	}
	var leaves []string
	for i := range each { // the dependents of an owner lie far apart
		for j, owner := range owners {
			leaf := fmt.Sprintf("leaf-%d-%d", i, j)
			w.create("cm", leaf, []metav1.OwnerReference{owner})
			leaves = append(leaves, leaf)
		}
	}
	w.startWeir(weir.NoBrake)
	w.awaitGone(leaves...)
	if err := w.weir.AwaitIdle(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.awaitRequests(weirUser, "delete", n*each)
	gets := map[string]int{}
	for _, r := range w.audit(weirUser) {
		if r.Verb == "get" && r.Object.Resource == "configmaps" {
			gets[r.Object.Name]++
		}
	}
	often := map[int]int{} // how many owners were looked up so often
	for _, owner := range owners {
		often[gets[owner.Name]]++
		delete(gets, owner.Name)
	}
	if diff := cmp.Diff(map[int]int{1: n}, often); diff != "" {
		t.Errorf("owners by how often they were looked up (-want +have):\n%s", diff)
	}
	if len(gets) > 0 {
		t.Errorf("others were read: %v", gets)
	}
}
