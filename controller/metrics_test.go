package controller

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-dev/weir/controller/graph"
)

// TestOnlyWhoLeadsTellsOfRequests: a webhook and a controller that follows have the same graph and make next to no requests,
// so that the largest of all their bounds would be the one that everybody begins with.
func TestOnlyWhoLeadsTellsOfRequests(t *testing.T) {
	ofWork := []string{"weir_queue_oldest_seconds", "weir_request_concurrency"}
	for _, leads := range []bool{false, true} {
		registry := prometheus.NewRegistry()
		s := newStore()
		registry.MustRegister(newGraphMetrics(s.stats, func() bool { return leads }, func() time.Duration { return 0 }, newLimiter(DefaultConcurrency)))
		names := gathered(t, registry)
		if !slices.Contains(names, "weir_graph_kinds") {
			t.Errorf("leads %t: there is no weir_graph_kinds in %v", leads, names)
		}
		for _, name := range ofWork {
			if slices.Contains(names, name) != leads {
				t.Errorf("leads %t: %s is among %v: %t", leads, name, names, !leads)
			}
		}
	}
}

// TestFirstFailureIsAnIncrease: Prometheus sees none of a counter that begins with it.
func TestFirstFailureIsAnIncrease(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := newMetrics(registry)
	series := func() int {
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			if f.GetName() == "weir_actions_total" {
				return len(f.GetMetric())
			}
		}
		return 0
	}
	before := series()
	for verb := graph.Delete; verb <= graph.Unfinalize; verb++ {
		for _, o := range outcomes {
			a := graph.Action{Verb: verb}
			if verb == graph.Delete {
				a.Propagation = "Foreground"
			}
			m.acted(a, o)
		}
	}
	if diff := cmp.Diff(before, series()); diff != "" || before == 0 {
		t.Errorf("series of weir_actions_total (-before anything was done +after):\n%s", diff)
	}
}

func gathered(t *testing.T, registry *prometheus.Registry) []string {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range families {
		names = append(names, f.GetName())
	}
	return names
}
