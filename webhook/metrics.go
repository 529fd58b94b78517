package webhook

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-dev/weir/policies"
	"github.com/weir-dev/weir/policies/finalizers"
)

type metrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	armed    *prometheus.CounterVec
	panics   prometheus.Counter
	failures *prometheus.CounterVec
}

// failures has a series for each policy in force from the beginning: an increase is seen only of a
// series that exists.
type failures struct {
	*prometheus.CounterVec
	inForce func() *policies.Set
}

// Collect implements prometheus.Collector.
func (f failures) Collect(out chan<- prometheus.Metric) {
	for _, s := range f.inForce().Statuses() {
		f.WithLabelValues(nameOf(s.Policy))
	}
	f.CounterVec.Collect(out)
}

func nameOf(p policies.PolicyKey) string { return p.Kind + "/" + p.Name }

func newMetrics(reg prometheus.Registerer, inForce func() *policies.Set) (*metrics, error) {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_webhook_requests_total",
			Help: "Reviews answered, by webhook, operation and result: allowed, patched, refused, throttled (429), " +
				"error (a policy could not be judged, and its failurePolicy decided), malformed (left to the " +
				"failurePolicy), large (a review that is too large to be judged: refused where a policy might " +
				"refuse). Reviews that were not read: unknown (no webhook has the path), busy (too many at once).",
		}, []string{"webhook", "operation", "result"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "weir_webhook_duration_seconds", Buckets: prometheus.ExponentialBucketsRange(0.0001, 30, 24),
			Help: "Time from the first byte of a review to its answer.",
		}, []string{"webhook"}),
		armed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_webhook_armed_total",
			Help: "Objects to which the webhook had to add the finalizer at their DELETE, by result: done, already, " +
				"gone, changed, failed. DELETEs that had to wait because it had been added a moment before: waiting.",
		}, []string{"result"}),
		panics: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "weir_webhook_panics_total",
			Help: "Reviews that ended in a panic, and were left to the failurePolicy.",
		}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_policy_errors_total",
			Help: "Requests for which a policy could not be judged, by policy (KIND/NAME): a condition failed, or " +
				"something was not known yet. The failurePolicy decided.",
		}, []string{"policy"}),
	}
	// An increase is seen only of a series that exists.
	for asked := range Paths {
		m.requests.WithLabelValues(string(asked), "", "malformed")
		for _, operation := range []policies.Operation{policies.Create, policies.Update, policies.Delete} {
			m.requests.WithLabelValues(string(asked), string(operation), "error")
		}
	}
	m.armed.WithLabelValues("waiting")
	for _, result := range []finalizers.Result{
		finalizers.Done, finalizers.Already, finalizers.Gone, finalizers.Changed, finalizers.Failed,
	} {
		m.armed.WithLabelValues(string(result))
	}
	var errs []error
	for _, c := range []prometheus.Collector{failures{m.failures, inForce}, m.requests, m.duration, m.armed, m.panics} {
		errs = append(errs, reg.Register(c))
	}
	return m, errors.Join(errs...)
}

func (m *metrics) answered(asked policies.Webhook, operation, result string, began time.Time) {
	switch operation {
	case "", string(policies.Create), string(policies.Update), string(policies.Delete):
	default:
		operation = "other" // a client must not be able to make any number of series
	}
	m.requests.WithLabelValues(string(asked), operation, result).Inc()
	m.duration.WithLabelValues(string(asked)).Observe(time.Since(began).Seconds())
}

func (m *metrics) failed(errs []policies.PolicyError) {
	for _, e := range errs {
		m.failures.WithLabelValues(nameOf(e.Policy)).Inc()
	}
}
