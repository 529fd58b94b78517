package follow

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-dev/weir/controller/kinds"
)

// metrics are what is counted of following the cluster.
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
			Help: "How often the API server's history went back, because its storage was restored from a backup, and everything was listed again.",
		}),
		faults: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_graph_faults_total",
			Help: "Objects that an hourly list showed otherwise than the graph, although the watch had come past them; each is repaired, and a bug. What is missing is there and not in the graph, what is outdated is otherwise than in the graph.",
		}, []string{"group", "resource", "what"}),
	}
	reg.MustRegister(m.discoveryErrors, m.rewound, m.faults)
	return m
}
