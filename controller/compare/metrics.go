package compare

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/controller/kinds"
)

// metrics are what comparisons of the graph with the API find.
type metrics struct {
	comparisons *prometheus.CounterVec
	faults      *prometheus.CounterVec
	labels      kinds.Labels
}

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		comparisons: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_graph_comparisons_total",
			Help: "Comparisons of a kind in the graph with the API, by result: equal, faulty, or skipped if it could not be made.",
		}, []string{"result"}),
		faults: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_graph_faults_total",
			Help: "Objects that a comparison found wrong in the graph, and repaired; each is a bug. A ghost is in the graph and not there, what is missing is there and not in the graph.",
		}, []string{"group", "resource", "what"}),
	}
	reg.MustRegister(m.comparisons, m.faults)
	return m
}

// comparing makes the counters of a kind's faults: an increase is seen only of what was there
// before.
func (m *metrics) comparing(kind schema.GroupResource) {
	for _, what := range []graphFault{faultGhost, faultMissing, faultOutdated} {
		m.faulty(kind, what, 0)
	}
}

func (m *metrics) faulty(kind schema.GroupResource, what graphFault, n float64) {
	kind = m.labels.Of(kind)
	m.faults.WithLabelValues(kind.Group, kind.Resource, string(what)).Add(n)
}
