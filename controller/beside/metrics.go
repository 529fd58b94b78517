package beside

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics have no series before something is known: a zero would be a claim.
type metrics struct {
	other, alive, lag *prometheus.GaugeVec
}

func newMetrics(reg prometheus.Registerer) *metrics {
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	}
	m := &metrics{
		other: gauge("weir_other_collector",
			"1 if another garbage collector works in the cluster, and Weir collects nothing; 0 if none was "+
				"seen. of=unknown is 1 while Weir cannot tell, and collects nothing until it can. Shown in "+
				"replace mode, by the leader or the one that waits to lead.", "of"),
		alive: gauge("weir_builtin_collector_alive",
			"1 if the built-in garbage collector deleted the last canary within a minute, else 0. Shown in companion "+
				"mode, by the leader."),
		lag: gauge("weir_builtin_collector_lag_seconds",
			"How long the built-in garbage collector took to delete the last canary, or for how long it has not. "+
				"Shown in companion mode, by the leader."),
	}
	reg.MustRegister(m.other, m.alive, m.lag)
	return m
}

// untold sets whether it is unknown if another collector works.
func (m *metrics) untold(is bool) {
	if is {
		m.other.WithLabelValues("unknown").Set(1)
	} else {
		m.other.DeleteLabelValues("unknown")
	}
}

// measured sets whether the built-in collector works, and how long it took.
func (m *metrics) measured(alive bool, took time.Duration) {
	m.alive.WithLabelValues().Set(number(alive))
	m.lag.WithLabelValues().Set(took.Seconds())
}

func number(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
