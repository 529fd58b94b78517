package controller

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-dev/weir/controller/request"
)

// loadMetrics reads the load when it is scraped, while this process works. A process that only
// follows makes next to no requests, and its figures would say nothing.
type loadMetrics struct {
	works   func() bool
	oldest  func() time.Duration
	limiter *request.Limiter

	age, concurrency, putOff *prometheus.Desc
}

func newLoadMetrics(works func() bool, oldest func() time.Duration, l *request.Limiter) *loadMetrics {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	return &loadMetrics{
		works: works, oldest: oldest, limiter: l,
		age: desc("weir_queue_oldest_seconds",
			"The longest time for which an object waits for the collector. Shown by the leader."),
		concurrency: desc("weir_request_concurrency",
			"Requests that the collector may have under way at once, which follows how the API server answers. Shown by "+
				"the leader."),
		putOff: desc("weir_objects_put_off",
			"Objects that wait because requests about their kind hang, are slow, fail, or are answered 429. Only such "+
				"kinds are shown, by the leader.", "group", "resource"),
	}
}

// Describe implements prometheus.Collector.
func (m *loadMetrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.age, m.concurrency, m.putOff} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (m *loadMetrics) Collect(ch chan<- prometheus.Metric) {
	if !m.works() {
		return
	}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	gauge(m.age, m.oldest().Seconds())
	gauge(m.concurrency, m.limiter.Bound())
	for kind, n := range m.limiter.PutOffs() {
		gauge(m.putOff, float64(n), kind.Group, kind.Resource)
	}
}
