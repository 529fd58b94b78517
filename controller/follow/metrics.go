package follow

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-dev/weir/controller/kinds"
)

// metrics count what happens while the cluster is followed.
type metrics struct {
	discoveryErrors prometheus.Counter
	rewound         prometheus.Counter
	faults          *prometheus.CounterVec
	labels          kinds.Labels
}

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		discoveryErrors: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "weir_discovery_errors_total",
			Help: "Discovery passes that failed, for all API groups or for some.",
		}),
		rewound: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "weir_history_rewound_total",
			Help: "How often the API server's history went back, because its storage was restored from a backup, and " +
				"everything was listed again.",
		}),
		faults: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_graph_faults_total",
			Help: "Objects that were wrong in the graph, as an hourly list showed, although the watch had passed them. " +
				"Each is repaired, and a bug. missing: it was not in the graph; outdated: the graph had another state of it.",
		}, []string{"group", "resource", "what"}),
	}
	reg.MustRegister(m.discoveryErrors, m.rewound, m.faults)
	return m
}
