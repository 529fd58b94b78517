package undo

import "github.com/prometheus/client_golang/prometheus"

type metrics struct {
	recorded *prometheus.CounterVec
	bytes    prometheus.Gauge
}

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		recorded: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_archive_trees_total",
			Help: "Trees of deleted objects, by result: recorded; failed (an attempt that is made again, or given up); " +
				"unrecorded (the object went without, by failurePolicy Ignore); evicted (purged before its time: the archive is " +
				"full); shipped to the bucket; unshipped (a round of shipping that failed, and is made again).",
		}, []string{"result"}),
		bytes: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "weir_archive_bytes", Help: "How much of the archive is used, sealed, on the replica that leads."}),
	}
	reg.MustRegister(m.recorded, m.bytes)
	for _, result := range []string{"recorded", "failed", "unrecorded", "evicted", "shipped", "unshipped"} {
		m.recorded.WithLabelValues(result)
	}
	return m
}
