package request

import (
	"errors"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// metrics are the metrics of requests.
type metrics struct {
	requests *prometheus.HistogramVec
	deletes  *prometheus.CounterVec
}

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "weir_request_duration_seconds", Buckets: prometheus.ExponentialBucketsRange(0.0005, 60, 24),
			Help: "Latency of the collector's requests to the API server, by verb and status code.",
		}, []string{"verb", "code"}),
		deletes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_deletes_total",
			Help: "DELETE requests for single objects, of the collector and of namespaces that drain, by kind and result.",
		}, []string{"group", "resource", "result"}),
	}
	reg.MustRegister(m.requests, m.deletes)
	return m
}

func (m *metrics) request(verb string, err error, latency time.Duration) {
	code := "200"
	if err != nil {
		code = "none" // no answer
		if status := apierrors.APIStatus(nil); errors.As(err, &status) {
			code = strconv.Itoa(int(status.Status().Code))
		}
	}
	m.requests.WithLabelValues(verb, code).Observe(latency.Seconds())
}

// deleted counts a DELETE of one object.
func (m *metrics) deleted(kind schema.GroupResource, o Outcome) {
	m.deletes.WithLabelValues(kind.Group, kind.Resource, string(o)).Inc()
}
