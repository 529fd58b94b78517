package e2e

import (
	"context"
	"slices"
	"testing"
	"time"

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

// awaitMetrics waits until weir's metrics are as they should be.
func (w *fixture) awaitMetrics(what string, holds func(weir.Metrics) bool) {
	w.Helper()
	w.until(what, func(ctx context.Context) (bool, error) {
		m, err := w.weir.Metrics(ctx)
		if err != nil {
			return false, err
		}
		return holds(m), nil
	})
}

// TestNewKindIsWatchedWithinTwoSeconds counts from when the API server says that
// the kind is established, to when its first list is complete. An object would
// tell less: the API server takes two seconds to make the first of a new kind.
func TestNewKindIsWatchedWithinTwoSeconds(t *testing.T) {
	t.Parallel()
	w := newCluster(t, plane.Options{})
	w.startWeir()
	var took []time.Duration
	for _, name := range []string{"Apple", "Banana", "Cherry"} {
		crd := w.definition(name, apiextensionsv1.NamespaceScoped, "v1")
		w.define(crd)
		established := time.Now()
		w.awaitMetrics("the kind is watched", func(m weir.Metrics) bool {
			return m.Has("weir_graph_objects", "resource", crd.Spec.Names.Plural) && m.Sum("weir_graph_kinds", "state", "listing") == 0
		})
		took = append(took, time.Since(established).Round(time.Millisecond))
	}
	t.Logf("watched after %v", took)
	if slices.Sort(took); took[1] > 2*time.Second { // one of three may meet a busy machine
		t.Errorf("watched after %v", took)
	}
}
