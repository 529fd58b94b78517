package follow

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
)

// mostEnding bounds how many ending owners are observed, and so the cost of a scrape.
const mostEnding = 4096

// graphMetrics reads the state of the graph when it is scraped.
type graphMetrics struct {
	store   *Store
	follows func(schema.GroupResource) bool

	// since says when an ending owner was first seen here: the graph has no clock. The lock of the
	// store guards it.
	since map[types.UID]time.Time

	objects, claims, kinds, ending, oldest *prometheus.Desc
}

// NewGraphMetrics returns the collector of how large and how complete the graph is, for the kinds
// that are followed, and for how long owners have been ending.
func NewGraphMetrics(s *Store, follows func(schema.GroupResource) bool) *graphMetrics {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	return &graphMetrics{
		store:   s,
		follows: follows,
		since:   map[types.UID]time.Time{},
		objects: desc("weir_graph_objects", "Objects in the ownership graph, by kind.", "group", "resource"),
		claims: desc("weir_graph_claims",
			"Distinct owner references, by what they mean. Those that are unresolvable stay so until the cluster or the "+
				"reference changes.", "state"),
		kinds: desc("weir_graph_kinds",
			"Kinds that are watched, by state: only synced kinds are complete. A kind that is behind was synced, and its "+
				"watch is broken.", "state"),
		ending: desc("weir_graph_ending_owners",
			"Owners that are being deleted with foreground or orphan and wait for their dependents."),
		oldest: desc("weir_ending_owner_oldest_seconds",
			"The longest time for which this process has seen an owner being deleted with foreground or orphan.",
			"propagation"),
	}
}

// Describe implements prometheus.Collector.
func (m *graphMetrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.objects, m.claims, m.kinds, m.ending, m.oldest} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (m *graphMetrics) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	st := m.store.Stats()
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
	for propagation, age := range m.ages(time.Now()) {
		gauge(m.oldest, age.Seconds(), string(propagation))
	}
}

// ages returns for how long the oldest owners have been ending, and forgets those that have gone.
func (m *graphMetrics) ages(now time.Time) map[metav1.DeletionPropagation]time.Duration {
	oldest := map[metav1.DeletionPropagation]time.Duration{
		metav1.DeletePropagationForeground: 0, metav1.DeletePropagationOrphan: 0,
	}
	m.store.Read(func(g *graph.Graph) {
		since := map[types.UID]time.Time{}
		for _, e := range g.Ending(mostEnding) {
			at, known := m.since[e.UID]
			if !known {
				at = now
			}
			since[e.UID] = at
			oldest[e.Propagation] = max(oldest[e.Propagation], now.Sub(at))
		}
		m.since = since
	})
	return oldest
}
