//go:build full

package e2e

import (
	"slices"
	"testing"
	"time"

	"github.com/weir-dev/weir/e2e/plane"
	"github.com/weir-dev/weir/e2e/weir"
)

// TestCompanionTellsWhetherTheBuiltInCollectorWorks by how long a canary stands.
func TestCompanionTellsWhetherTheBuiltInCollectorWorks(t *testing.T) {
	t.Parallel()
	w := newCluster(t, plane.Options{Controllers: plane.CollectorOnly})
	const silent = 30 * time.Second
	w.startWeir("--mode", "companion", "--canary-time", (silent / 6).String())
	w.awaitMetricsIn(collectorBegins, "the built-in collector works", func(m weir.Metrics) bool {
		lag := m.Sum("weir_builtin_collector_lag_seconds")
		return m.Sum("weir_builtin_collector_alive") == 1 && lag > 0 && lag < silent.Seconds()
	})
	if err := w.plane.StopController(); err != nil {
		t.Fatal(err)
	}
	// The next canary comes within a minute, and has another.
	w.awaitMetricsIn(3*patience, "it is silent", func(m weir.Metrics) bool {
		return len(m["weir_builtin_collector_alive"].GetMetric()) == 1 && m.Sum("weir_builtin_collector_alive") == 0 && m.Sum("weir_builtin_collector_lag_seconds") >= silent.Seconds()
	})
	w.awaitCanaryEvent("BuiltinCollectorSilent", "the built-in garbage collector does not work")
	if n := len(slices.DeleteFunc(w.auditOf(weirUser), func(r request) bool { return r.Object.Name != collectorCanary })); n == 0 || n > 120 {
		t.Errorf("%d requests about the canary in up to two minutes", n)
	}
	if err := w.plane.StartController(t.Context(), plane.CollectorOnly); err != nil {
		t.Fatal(err)
	}
	w.awaitMetricsIn(collectorBegins, "it works again", func(m weir.Metrics) bool { return m.Sum("weir_builtin_collector_alive") == 1 })
	w.awaitCanaryEvent("BuiltinCollectorWorks", "works again")
}
