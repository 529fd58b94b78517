package controller

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// countersByKind are counters of which each kind has its own: what is deleted, and what comparisons find.
type countersByKind struct {
	deletes     *prometheus.CounterVec
	comparisons *prometheus.CounterVec
	faults      *prometheus.CounterVec
	labels      kindLabels
}

func (m *countersByKind) registerByKind(reg prometheus.Registerer) {
	m.deletes = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "weir_deletes_total",
		Help: "DELETE requests for single objects, of the collector and of namespaces that drain, by kind and result.",
	}, []string{"group", "resource", "result"})
	m.comparisons = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "weir_graph_comparisons_total",
		Help: "Comparisons of a kind in the graph with the API, by result: level, faulty, or skipped if it could not be made.",
	}, []string{"result"})
	m.faults = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "weir_graph_faults_total",
		Help: "Objects that a comparison found wrong in the graph, and repaired; each is a bug. A ghost is in the graph and not there, what is missing is there and not in the graph.",
	}, []string{"group", "resource", "what"})
	reg.MustRegister(m.deletes, m.comparisons, m.faults)
}

// deleted counts a DELETE of one object.
func (m *countersByKind) deleted(kind schema.GroupResource, o outcome) {
	kind = m.labels.of(kind)
	m.deletes.WithLabelValues(kind.Group, kind.Resource, string(o)).Inc()
}

// comparing makes the counters of a kind's faults: an increase is seen only of what was there before.
func (m *countersByKind) comparing(kind schema.GroupResource) {
	for _, what := range []graphFault{faultGhost, faultMissing, faultOutdated} {
		m.faulty(kind, what, 0)
	}
}

func (m *countersByKind) faulty(kind schema.GroupResource, what graphFault, n float64) {
	kind = m.labels.of(kind)
	m.faults.WithLabelValues(kind.Group, kind.Resource, string(what)).Add(n)
}

// mostKindLabels bounds how many kinds counters have labels for: counters stay, and kinds come and go.
const mostKindLabels = 1000

// otherKinds stands for the kinds that come after that.
var otherKinds = schema.GroupResource{Resource: "other"}

// kindLabels are the kinds that counters have labels for. The zero value is ready.
type kindLabels struct {
	mu    sync.Mutex
	known map[schema.GroupResource]struct{}
}

func (k *kindLabels) of(kind schema.GroupResource) schema.GroupResource {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, ok := k.known[kind]; ok {
		return kind
	}
	if len(k.known) >= mostKindLabels {
		return otherKinds
	}
	if k.known == nil {
		k.known = map[schema.GroupResource]struct{}{}
	}
	k.known[kind] = struct{}{}
	return kind
}
