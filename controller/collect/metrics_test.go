package collect

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/request"
)

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
		for _, o := range request.Outcomes {
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
