package webhook

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-dev/weir/policies"
)

type metrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	armed    *prometheus.CounterVec
	panics   prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_webhook_requests_total",
			Help: "Reviews answered, by webhook, operation and result: allowed, patched, refused, later (429), error and malformed (both left to the failurePolicy).",
		}, []string{"webhook", "operation", "result"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "weir_webhook_duration_seconds", Buckets: prometheus.ExponentialBucketsRange(0.0001, 30, 24),
			Help: "Time from the first byte of a review to its answer.",
		}, []string{"webhook"}),
		armed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_webhook_armed_total",
			Help: "Objects that had to be stamped at their DELETE, by result: done, already, gone, failed; and DELETEs that had to wait for a fresh stamp: waiting.",
		}, []string{"result"}),
		panics: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "weir_webhook_panics_total",
			Help: "Reviews that ended in a panic, and were left to the failurePolicy.",
		}),
	}
	return m, errors.Join(reg.Register(m.requests), reg.Register(m.duration), reg.Register(m.armed), reg.Register(m.panics))
}

func (m *metrics) answered(asked policies.Webhook, operation, result string, began time.Time) {
	switch operation {
	case "", string(policies.Create), string(policies.Update), string(policies.Delete):
	default:
		operation = "other" // whoever sends it must not be able to make series without end
	}
	m.requests.WithLabelValues(string(asked), operation, result).Inc()
	m.duration.WithLabelValues(string(asked)).Observe(time.Since(began).Seconds())
}
