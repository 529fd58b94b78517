package collect

import (
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/request"
)

// metrics are what workers count.
type metrics struct {
	actions *prometheus.CounterVec
	lag     prometheus.Histogram
	lookups *prometheus.CounterVec
	kept    prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		actions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_actions_total",
			Help: "What the collector did with objects, by action, propagation and result.",
		}, []string{"action", "propagation", "result"}),
		lag: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "weir_delete_lag_seconds", Buckets: prometheus.ExponentialBucketsRange(0.0005, 60, 24),
			Help: "Time from the event that made an object garbage to its DELETE being sent.",
		}),
		lookups: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_lookups_total",
			Help: "Live reads of owners that no watch had shown, by answer. Priority low: another owner keeps the object, and " +
				"reads are paced.",
		}, []string{"priority", "answer"}),
	}
	m.kept = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "weir_kept_total",
		Help: "Objects that were garbage, and that a policy protects or a person keeps: they were released from their " +
			"owners and not deleted.",
	})
	reg.MustRegister(m.actions, m.lag, m.lookups, m.kept)
	m.begin()
	return m
}

// begin makes the counters that alerts use: an increase is seen only of a series that exists.
func (m *metrics) begin() {
	for _, o := range request.Outcomes {
		for _, propagation := range []metav1.DeletionPropagation{
			metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan,
		} {
			m.actions.WithLabelValues(graph.Delete.String(), string(propagation), string(o))
		}
		for _, verb := range []graph.Verb{graph.Release, graph.Unblock, graph.Unfinalize} {
			m.actions.WithLabelValues(verb.String(), "", string(o))
		}
	}
}

func (m *metrics) acted(a graph.Action, o request.Outcome) {
	m.actions.WithLabelValues(a.Verb.String(), string(a.Propagation), string(o)).Inc()
}

func (m *metrics) looked(a graph.Action, answer graph.Answer) {
	priority := "high"
	if a.LowPriority {
		priority = "low"
	}
	m.lookups.WithLabelValues(priority, answer.String()).Inc()
}
