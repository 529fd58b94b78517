//go:build full

package e2e

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/e2e/plane"
	"github.com/weir-dev/weir/e2e/weir"
)

// TestObjectWithAsManyReferencesAsFitIsJudgedByAllOfThem: the API server's limit
// is the size of what it stores.
func TestObjectWithAsManyReferencesAsFitIsJudgedByAllOfThem(t *testing.T) {
	t.Parallel()
	w := newCluster(t, plane.Options{}) // it takes weir a while, and others wait until it is idle
	w.startWeir()
	w.make(`cm boss`)
	const n = 10_000
	owners := make([]metav1.OwnerReference, 0, n)
	for i := range n - 1 {
		owners = append(owners, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "nobody", UID: types.UID(fmt.Sprintf("nobody-%d", i))})
	}
	w.create("cm", "leaf", append(owners, w.reference("boss")))
	w.create("cm", "stray", owners[:1000])
	w.awaitGone("stray")
	w.mustStay("boss", "leaf")
	w.delete("boss", background)
	w.awaitGone("boss")
	// Each of them is looked up, one after the other: patience is with a part.
	for w.get("leaf") != nil {
		var before weir.Metrics
		w.awaitMetrics("a thousand more are looked up", func(m weir.Metrics) bool {
			if before == nil {
				before = m
			}
			looked := m.Sum("weir_request_duration_seconds", "verb", "get") - before.Sum("weir_request_duration_seconds", "verb", "get")
			return looked >= 1000 || w.get("leaf") == nil // it may have been the last thousand
		})
	}
}
