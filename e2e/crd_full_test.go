//go:build full

package e2e

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/weir-dev/weir/e2e/plane"
	"github.com/weir-dev/weir/e2e/weir"
)

// TestKindThatComesAndGoesLeavesNothingBehind deletes a CRD, with it its objects,
// and then what those owned; and makes the same CRD again, whose objects have
// nothing to do with those of before.
func TestKindThatComesAndGoesLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	w := newCluster(t, plane.Options{})
	w.startWeir()
	crd := w.definition("Widget", apiextensionsv1.NamespaceScoped, "v1")
	var goroutines []float64
	for range 5 {
		w.define(crd)
		w.make(`
			widget boss
			cm     leaf   owners=(boss)
		`)
		w.mustStay("boss", "leaf")
		if n := w.watches(crd.Spec.Names.Plural); n != 1 {
			t.Errorf("%.0f watches of %s, want 1", n, crd.Name)
		}
		w.undefine(crd)
		w.awaitGone("leaf")
		w.awaitMetrics("the kind is not watched any more", func(m weir.Metrics) bool {
			return !m.Has("weir_graph_objects", "resource", crd.Spec.Names.Plural)
		})
		if n := w.watches(crd.Spec.Names.Plural); n != 0 {
			t.Errorf("%.0f watches of %s, which is gone", n, crd.Name)
		}
		if err := w.weir.AwaitIdle(w.Context()); err != nil {
			t.Fatal(err)
		}
		m, err := w.weir.Metrics(w.Context())
		if err != nil {
			t.Fatal(err)
		}
		goroutines = append(goroutines, m.Sum("go_goroutines"))
	}
	// The first round opens connections; each round that leaks adds one or more.
	if first, last := goroutines[1], goroutines[len(goroutines)-1]; last > first+2 {
		t.Errorf("goroutines after each round: %v", goroutines)
	}
	t.Logf("goroutines after each round: %v", goroutines)
}

// watches is how many watches of a resource the API server serves now.
func (w *fixture) watches(resource string) float64 {
	w.Helper()
	text, err := w.plane.Metrics(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	m, err := weir.ParseMetrics(text)
	if err != nil {
		w.Fatal(err)
	}
	return m.Sum("apiserver_longrunning_requests", "verb", "WATCH", "resource", resource)
}
