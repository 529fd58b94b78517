//go:build full

package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
)

// TestMetricsAreThereAndNamedAsPrometheusWantsThem: their names and labels are
// what dashboards and alerts are made of.
func TestMetricsAreThereAndNamedAsPrometheusWantsThem(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.make(`
		cm boss
		cm leaf   owners=(boss)
	`)
	w.delete("boss", background)
	w.awaitGone("leaf")
	w.settle()
	text, err := w.weir.Get(t.Context(), "/metrics", "")
	if err != nil {
		t.Fatal(err)
	}
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "weir_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}

	m, err := w.weir.Metrics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name, labels := range map[string][]string{
		"weir_actions_total":            {"action", "delete", "propagation", "Background", "result", "ok"},
		"weir_request_duration_seconds": {"verb", "delete", "code", "200"},
		"weir_deletes_total":            {"group", "", "resource", "configmaps", "result", "ok"},
		"weir_delete_lag_seconds":       nil,
		"weir_graph_objects":            {"group", "", "resource", "configmaps"},
		"weir_graph_kinds":              {"state", "synced"},
		"weir_graph_claims":             {"state", "present"},
		"weir_request_concurrency":      nil,
		"workqueue_depth":               {"name", "graph"},
	} {
		if !m.Has(name, labels...) {
			t.Errorf("there is no %s %v", name, labels)
		}
	}
	for _, name := range []string{"weir_graph_ending_owners", "weir_ending_owner_oldest_seconds", "weir_queue_oldest_seconds", "weir_discovery_errors_total", "go_goroutines", "process_resident_memory_bytes", "rest_client_requests_total"} {
		if !slices.Contains(m.Names(), name) {
			t.Errorf("there is no %s", name)
		}
	}
	if n := m.Sum("weir_graph_kinds", "state", "failing") + m.Sum("weir_graph_kinds", "state", "forbidden"); n != 0 {
		t.Errorf("%.0f kinds are not watched", n)
	}
}
