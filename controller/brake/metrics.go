package brake

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-dev/weir/controller/graph"
)

type metrics struct {
	inferred *prometheus.CounterVec
	held     *prometheus.GaugeVec
}

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		inferred: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_inferred_deletes_total",
			Help: "Garbage whose owners were not seen to be deleted, by what Weir concludes it from, and by answer: go (it " +
				"is deleted) or held.",
		}, []string{"conclusion", "answer"}),
		held: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "weir_held_objects",
			Help: "Objects that are held until a person decides, with all that would be deleted with them, by the kind of " +
				"their owners; requested.KIND: objects of a kind that were deleted by request, held by a policy's brake.",
		}, []string{"owners"}),
	}
	reg.MustRegister(m.inferred, m.held)
	for _, c := range []graph.Conclusion{graph.OwnerNotFound, graph.DefinitionGone, graph.ReferenceEdited} {
		for _, answer := range []string{"go", "held"} {
			m.inferred.WithLabelValues(c.String(), answer)
		}
	}
	return m
}

func (m *metrics) answered(a graph.Action, answer string) {
	m.inferred.WithLabelValues(a.Inferred.Conclusion.String(), answer).Inc()
}
