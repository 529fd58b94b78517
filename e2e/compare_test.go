//go:build full

package e2e

import (
	"context"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/e2e/plane"
)

// TestWhatAWatchDidNotShowIsFoundAndRepaired keeps events from weir: a deletion, an
// object, and a change. Nothing else would ever tell it (RB 11.24).
func TestWhatAWatchDidNotShowIsFoundAndRepaired(t *testing.T) {
	t.Parallel()
	w := newCluster(t, plane.Options{})
	b := w.startWeirBehind("--compare-graph-every", "10s")
	w.make(`
		cm beat
		cm ghost
		cm of-ghost  owners=(ghost)
		cm turns
	`)
	w.settle()
	b.miss("DELETED ghost", "ADDED lost", "MODIFIED turns")
	w.delete("ghost", background)
	w.create("cm", "lost", []metav1.OwnerReference{ownerThatNeverWas()})
	w.patch("turns", `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Namespace","name":"nobody","uid":"nobody"}]}}`)
	w.awaitMissed(b, "DELETED ghost", "ADDED lost", "MODIFIED turns")
	beats := 0
	w.until("garbage that weir was not told of is collected", func(ctx context.Context) (bool, error) {
		beats++
		w.patch("beat", `{"data":{"beat":"`+strconv.Itoa(beats)+`"}}`) // without it the next bookmark would tell how far the watch is
		left, err := w.left(ctx, []string{"of-ghost", "lost", "turns"})
		return len(left) == 0, err
	})

	m, err := w.weir.Metrics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]float64{}
	for _, what := range []string{"ghost", "missing", "outdated"} {
		found[what] = m.Sum("weir_graph_faults_total", "what", what, "resource", "configmaps")
	}
	if diff := cmp.Diff(map[string]float64{"ghost": 1, "missing": 1, "outdated": 1}, found); diff != "" {
		t.Errorf("faults of configmaps (-want +found):\n%s", diff)
	}
	if n := m.Sum("weir_graph_faults_total"); n != 3 {
		t.Errorf("%.0f faults in all, want 3", n)
	}
}
