package controller

import (
	"errors"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/controller/graph"
)

// metrics are what the collector counts as it works. What the graph counts is read when it is asked
// for, by graphMetrics.
type metrics struct {
	actions         *prometheus.CounterVec
	requests        *prometheus.HistogramVec
	lag             prometheus.Histogram
	lookups         *prometheus.CounterVec
	discoveryErrors prometheus.Counter
	rewound         prometheus.Counter
	countersByKind
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
		lookups: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_lookups_total",
			Help: "Live reads of owners that no watch had shown, by answer. Priority low: another owner keeps the object, and reads are paced.",
		}, []string{"priority", "answer"}),
		discoveryErrors: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "weir_discovery_errors_total",
			Help: "Discovery passes that failed, wholly or for some API groups.",
		}),
	}
	m.rewound = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "weir_history_rewound_total",
		Help: "How often the API server's history went back, because its storage was restored from a backup, and everything was listed anew.",
	})
	reg.MustRegister(m.actions, m.requests, m.lag, m.lookups, m.discoveryErrors, m.rewound)
	m.registerByKind(reg)
	m.begin()
	return m
}

// begin makes the counters that alerts look at: an increase is seen only of what was there before.
func (m *metrics) begin() {
	for _, o := range outcomes {
		for _, propagation := range []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan} {
			m.actions.WithLabelValues(graph.Delete.String(), string(propagation), string(o))
		}
		for _, verb := range []graph.Verb{graph.Release, graph.Unblock, graph.Unfinalize} {
			m.actions.WithLabelValues(verb.String(), "", string(o))
		}
	}
}

func (m *metrics) acted(a graph.Action, o outcome) {
	m.actions.WithLabelValues(a.Verb.String(), string(a.Propagation), string(o)).Inc()
}

func (m *metrics) looked(a graph.Action, answer graph.Answer) {
	priority := "high"
	if a.LowPriority {
		priority = "low"
	}
	m.lookups.WithLabelValues(priority, answer.String()).Inc()
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

// graphMetrics reads the state of the graph when it is scraped, and that of requests while this process works. One that
// only follows, or is a webhook, makes next to none: its figures would stand beside those of the one that works, and say
// nothing.
type graphMetrics struct {
	stats   func() graph.Stats
	works   func() bool
	oldest  func() time.Duration
	limiter *limiter

	objects, claims, kinds, ending, age, concurrency, putOff *prometheus.Desc
}

func newGraphMetrics(stats func() graph.Stats, works func() bool, oldest func() time.Duration, l *limiter) *graphMetrics {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	return &graphMetrics{
		stats: stats, works: works, oldest: oldest, limiter: l,
		objects:     desc("weir_graph_objects", "Objects in the ownership graph, by kind.", "group", "resource"),
		claims:      desc("weir_graph_claims", "Distinct owner references, by what they mean: trouble counts those that can never be resolved as things are.", "state"),
		kinds:       desc("weir_graph_kinds", "Kinds that are watched, by how far: only synced kinds are complete. Those that are behind were, and their watch is broken.", "state"),
		ending:      desc("weir_graph_ending_owners", "Owners that are being deleted with foreground or orphan and wait for their dependents."),
		age:         desc("weir_queue_oldest_seconds", "How long the object that has waited longest has had something to do. Shown by who leads."),
		concurrency: desc("weir_request_concurrency", "Requests that may be under way at once, as the API server grants them now. Shown by who leads."),
		putOff:      desc("weir_objects_put_off", "Objects that wait because requests about their kind hang, are slow, fail, or are answered 429. Only kinds in such trouble are shown, by who leads.", "group", "resource"),
	}
}

// Describe implements prometheus.Collector.
func (m *graphMetrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.objects, m.claims, m.kinds, m.ending, m.age, m.concurrency, m.putOff} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (m *graphMetrics) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	st := m.stats()
	const behind = "behind"
	states := map[string]int{behind: 0}
	for s := graph.Listing; s <= graph.Forbidden; s++ {
		states[s.String()] = 0
	}
	for _, k := range st.Kinds {
		if k.State == graph.Unwatched {
			continue
		}
		if k.Behind != "" {
			states[behind]++
		} else {
			states[k.State.String()]++
		}
		gauge(m.objects, float64(k.Objects), k.Group, k.Resource.Resource)
	}
	for s, n := range states {
		gauge(m.kinds, float64(n), s)
	}
	for state, n := range st.Claims {
		gauge(m.claims, float64(n), state)
	}
	gauge(m.ending, float64(st.Ending))
	if !m.works() {
		return
	}
	gauge(m.age, m.oldest().Seconds())
	gauge(m.concurrency, m.limiter.bound())
	for kind, n := range m.limiter.putOffs() {
		gauge(m.putOff, float64(n), kind.Group, kind.Resource)
	}
}
