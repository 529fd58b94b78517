package follow

import "github.com/prometheus/client_golang/prometheus"

// metrics count what happens while the cluster is followed.
type metrics struct {
	discoveryErrors prometheus.Counter
	rewound         prometheus.Counter
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
	}
	reg.MustRegister(m.discoveryErrors, m.rewound)
	return m
}
