package controller

import (
	"errors"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/weir-dev/weir/controller/graph"
)

// metrics are what the collector counts as it works. What the graph counts is read when it is asked
// for, by graphMetrics.
type metrics struct {
	actions         *prometheus.CounterVec
	requests        *prometheus.HistogramVec
	lag             prometheus.Histogram
	discoveryErrors prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) *metrics {
	fast := prometheus.ExponentialBucketsRange(0.0005, 60, 24)
	m := &metrics{
		actions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_actions_total",
			Help: "What the collector did with objects, by action, propagation and result.",
		}, []string{"action", "propagation", "result"}),
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "weir_request_duration_seconds", Buckets: fast,
			Help: "Latency of the collector's requests to the API server, by verb and status code.",
		}, []string{"verb", "code"}),
		lag: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "weir_delete_lag_seconds", Buckets: fast,
			Help: "Time from the event that made an object garbage to its DELETE being sent.",
		}),
		discoveryErrors: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "weir_discovery_errors_total",
			Help: "Discovery passes that failed, wholly or for some API groups.",
		}),
	}
	reg.MustRegister(m.actions, m.requests, m.lag, m.discoveryErrors)
	return m
}

func (m *metrics) acted(a graph.Action, o outcome) {
	m.actions.WithLabelValues(a.Verb.String(), string(a.Propagation), string(o)).Inc()
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

// graphMetrics reads the state of the graph when it is scraped.
type graphMetrics struct {
	stats  func() graph.Stats
	oldest func() time.Duration
	bound  func() float64

	objects, claims, kinds, ending, age, concurrency *prometheus.Desc
}

func newGraphMetrics(stats func() graph.Stats, oldest func() time.Duration, bound func() float64) *graphMetrics {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	return &graphMetrics{
		stats: stats, oldest: oldest, bound: bound,
		objects:     desc("weir_graph_objects", "Objects in the ownership graph, by kind.", "group", "resource"),
		claims:      desc("weir_graph_claims", "Distinct owner references, by what they mean: trouble counts those that can never be resolved as things are.", "state"),
		kinds:       desc("weir_graph_kinds", "Kinds that are watched, by how far: only synced kinds are complete.", "state"),
		ending:      desc("weir_graph_ending_owners", "Owners that are being deleted with foreground or orphan and wait for their dependents."),
		age:         desc("weir_queue_oldest_seconds", "How long the object that has waited longest has had something to do."),
		concurrency: desc("weir_request_concurrency", "Requests that may be under way at once, as the API server grants them now."),
	}
}

// Describe implements prometheus.Collector.
func (m *graphMetrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.objects, m.claims, m.kinds, m.ending, m.age, m.concurrency} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (m *graphMetrics) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	st := m.stats()
	states := map[graph.ListState]int{graph.Listing: 0, graph.Synced: 0, graph.Failing: 0, graph.Forbidden: 0}
	for _, k := range st.Kinds {
		if k.State == graph.Unwatched {
			continue
		}
		states[k.State]++
		gauge(m.objects, float64(k.Objects), k.Group, k.Resource.Resource)
	}
	for s, n := range states {
		gauge(m.kinds, float64(n), s.String())
	}
	for state, n := range st.Claims {
		gauge(m.claims, float64(n), state)
	}
	gauge(m.ending, float64(st.Ending))
	gauge(m.age, m.oldest().Seconds())
	gauge(m.concurrency, m.bound())
}
