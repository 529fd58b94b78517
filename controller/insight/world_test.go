package insight

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/controller/graph"
)

// TestOwnerThatMayHaveComeSinceIsNotGone: kinds are listed one after the other, and the cluster goes on.
func TestOwnerThatMayHaveComeSinceIsNotGone(t *testing.T) {
	for name, c := range map[string]struct {
		listed, written string // when the owner's kind was listed, and the dependent written
		gone            bool
	}{
		"written before": {"100", "99", true},
		"written then":   {"100", "100", true},
		"written after":  {"100", "101", false},
		"nobody knows":   {"", "101", true},
	} {
		t.Run(name, func(t *testing.T) {
			kind := func(resource, kind string) graph.Resource {
				return graph.Resource{Resource: resource, Kind: kind, Version: "v1", Versions: []string{"v1"}, Namespaced: true, Collected: true}
			}
			w := NewWorld("x", []graph.Resource{kind("configmaps", "ConfigMap"), kind("secrets", "Secret")})
			w.List(schema.GroupResource{Resource: "configmaps"}, c.listed, nil)
			w.List(schema.GroupResource{Resource: "secrets"}, "200", []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{
				Namespace: "x", Name: "s", UID: "s", ResourceVersion: c.written,
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "o", UID: "o"}},
			}}})
			orphans := w.Orphans()
			if len(orphans) != 1 {
				t.Fatalf("%d orphans", len(orphans))
			}
			if (orphans[0].Fate == "delete") != c.gone || !c.gone && !strings.Contains(orphans[0].Why, "the cluster changed while it was listed: ask again") {
				t.Errorf("fate %q, %q; the owner is to be gone: %t", orphans[0].Fate, orphans[0].Why, c.gone)
			}
		})
	}
}
