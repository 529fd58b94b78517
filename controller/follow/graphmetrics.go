package follow

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/controller/graph"
)

// graphMetrics reads the state of the graph when it is scraped.
type graphMetrics struct {
	stats   func() graph.Stats
	follows func(schema.GroupResource) bool

	objects, claims, kinds, ending *prometheus.Desc
}

// NewGraphMetrics returns the collector of how large and how complete the graph is, for the kinds
// that are followed.
func NewGraphMetrics(s *Store, follows func(schema.GroupResource) bool) *graphMetrics {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	return &graphMetrics{
		stats:   s.Stats,
		follows: follows,
		objects: desc("weir_graph_objects", "Objects in the ownership graph, by kind.", "group", "resource"),
		claims: desc("weir_graph_claims",
			"Distinct owner references, by what they mean. Those that are unresolvable stay so until the cluster or the "+
				"reference changes.", "state"),
		kinds: desc("weir_graph_kinds",
			"Kinds that are watched, by state: only synced kinds are complete. A kind that is behind was synced, and its "+
				"watch is broken.", "state"),
		ending: desc("weir_graph_ending_owners",
			"Owners that are being deleted with foreground or orphan and wait for their dependents."),
	}
}

// Describe implements prometheus.Collector.
func (m *graphMetrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.objects, m.claims, m.kinds, m.ending} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (m *graphMetrics) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	st := m.stats()
	states := map[string]int{}
	for s := graph.Listing; s <= graph.Forbidden; s++ {
		states[s.String()] = 0
	}
	for _, k := range st.Kinds {
		if k.State == graph.Unwatched || !m.follows(k.GroupResource()) {
			continue
		}
		states[k.State.String()]++
		gauge(m.objects, float64(k.Objects), k.Group, k.Resource.Resource)
	}
	for s, n := range states {
		gauge(m.kinds, float64(n), s)
	}
	for state, n := range st.Claims {
		gauge(m.claims, float64(n), state)
	}
	gauge(m.ending, float64(st.Ending))
}
