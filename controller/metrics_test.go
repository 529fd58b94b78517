package controller

import (
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-dev/weir/controller/follow"
	"github.com/weir-dev/weir/controller/request"
)

// TestOnlyWhoLeadsTellsOfRequests: a webhook and a controller that follows have the same graph and
// make next to no requests, so that the largest of all their bounds would be the one that everybody
// begins with.
func TestOnlyWhoLeadsTellsOfRequests(t *testing.T) {
	ofWork := []string{"weir_queue_oldest_seconds", "weir_request_concurrency"}
	for _, leads := range []bool{false, true} {
		registry := prometheus.NewRegistry()
		registry.MustRegister(follow.NewGraphMetrics(follow.NewStore(), nil), newLoadMetrics(func() bool { return leads }, func() time.Duration { return 0 }, request.NewLimiter(request.DefaultConcurrency)))
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
