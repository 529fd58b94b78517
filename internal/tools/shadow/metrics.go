package shadow

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/internal/tools/shadow/report"
)

type metrics struct {
	decisions, deletes     *prometheus.GaugeVec
	differences, onPurpose prometheus.Gauge
}

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		decisions: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "weir_shadow_decisions",
			Help: "What Weir would have done since it began, by action and result: done by the cluster, withdrawn because " +
				"of what was seen later, open. What was late is counted a second time, as late."}, []string{"action", "result"}),
		deletes: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "weir_shadow_deletes",
			Help: "Deletes of objects with owners that Weir had not decided: sooner than it, by others while an owner " +
				"lives, or kept by Weir in doubt."}, []string{"result"}),
		differences: prometheus.NewGauge(prometheus.GaugeOpts{Name: "weir_shadow_differences",
			Help: "What Weir would have done and the cluster did not, or the other way round, since it began. Those on " +
				"purpose are not counted."}),
		onPurpose: prometheus.NewGauge(prometheus.GaugeOpts{Name: "weir_shadow_differences_on_purpose",
			Help: "The same, where Weir differs from kube-controller-manager's collector on purpose: the report says in what."}),
	}
	reg.MustRegister(m.decisions, m.deletes, m.differences, m.onPurpose)
	return m
}

func (m *metrics) set(r report.Report) {
	for _, verb := range []graph.Verb{graph.Delete, graph.Release, graph.Unblock, graph.Unfinalize} {
		of, verb := r.Decisions[verb.String()], verb.String()
		for _, how := range []string{report.Done, report.Withdrawn, report.Late, "open"} {
			m.decisions.WithLabelValues(verb, how).Set(float64(of[how]))
		}
	}
	for _, how := range []string{report.Sooner, report.Others, report.Kept} {
		m.deletes.WithLabelValues(how).Set(float64(r.Deletes[how]))
	}
	unexplained := r.Unexplained()
	m.differences.Set(float64(unexplained))
	m.onPurpose.Set(float64(len(r.Differences) + r.More - unexplained))
}
