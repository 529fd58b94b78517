package follow

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
)

// mostEnding bounds how many ending owners are observed, and so the cost of a scrape: a few
// milliseconds.
const mostEnding = 4096

// endingMetrics report what owners wait for that are being deleted with foreground or orphan, and
// for how long. The graph has no clock, so an owner's time begins when it is first seen here.
// Owners beyond mostEnding are seen when there is room.
type endingMetrics struct {
	store *Store

	mu    sync.Mutex
	since map[types.UID]time.Time

	owners, oldest *prometheus.Desc
}

// NewEndingMetrics returns the collector of what owners wait for.
func NewEndingMetrics(s *Store) *endingMetrics {
	return &endingMetrics{
		store: s, since: map[types.UID]time.Time{},
		owners: prometheus.NewDesc("weir_ending_owners",
			"Owners that are being deleted with foreground or orphan, by what they wait for: dependents (of which kind one "+
				"is), lists of kinds that may hold more, or requests of Weir.",
			[]string{"propagation", "waits_for", "group", "resource"}, nil),
		oldest: prometheus.NewDesc("weir_ending_owner_oldest_seconds",
			"The longest time for which this process has seen an owner being deleted with foreground or orphan.",
			[]string{"propagation"}, nil),
	}
}

// Describe implements prometheus.Collector.
func (m *endingMetrics) Describe(ch chan<- *prometheus.Desc) {
	ch <- m.owners
	ch <- m.oldest
}

// Collect implements prometheus.Collector.
func (m *endingMetrics) Collect(ch chan<- prometheus.Metric) {
	type row struct {
		propagation, awaited, group, resource string
	}
	rows := map[row]int{}
	oldest := map[string]time.Duration{"Foreground": 0, "Orphan": 0}
	for _, e := range m.look(time.Now()) {
		rows[row{string(e.Propagation), string(e.WaitsFor), e.Blocker.Group, e.Blocker.Resource}]++
		oldest[string(e.Propagation)] = max(oldest[string(e.Propagation)], e.age)
	}
	for r, n := range rows {
		ch <- prometheus.MustNewConstMetric(m.owners, prometheus.GaugeValue, float64(n), r.propagation, r.awaited, r.group,
			r.resource)
	}
	for propagation, age := range oldest {
		ch <- prometheus.MustNewConstMetric(m.oldest, prometheus.GaugeValue, age.Seconds(), propagation)
	}
}

type endingOwner struct {
	graph.Ending
	age time.Duration
}

// look returns the ending owners, and forgets those that no longer are.
func (m *endingMetrics) look(now time.Time) []endingOwner {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := make([]types.UID, 0, len(m.since))
	for uid := range m.since {
		before = append(before, uid)
	}
	var ending []graph.Ending
	m.store.Read(func(g *graph.Graph) { ending = g.Ending(before, mostEnding) })
	since := make(map[types.UID]time.Time, len(ending))
	owners := make([]endingOwner, len(ending))
	for i, e := range ending {
		at, known := m.since[e.UID]
		if !known {
			at = now
		}
		since[e.UID] = at
		owners[i] = endingOwner{e, now.Sub(at)}
	}
	m.since = since
	return owners
}
