package beside

import (
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
)

// Bounds of what is watched: the built-in collector shows by a few how long it takes.
const (
	mostWatched  = 1000
	mostOfAnyone = 20 // dependents of one owner
)

// Lag observes how long the built-in collector takes for what it has to do anyway: from the end of an owner, as a watch shows it, until the
// delete of dependents that have no other. Of many it watches some. The canary tells when there is nothing to do.
type Lag struct {
	read func(func(*graph.Graph))
	took prometheus.Histogram

	mu    sync.Mutex
	since map[types.UID]time.Time // of what is to be deleted
}

// NewLag makes one that has observed nothing. read gives the graph.
func NewLag(read func(func(*graph.Graph)), reg prometheus.Registerer) *Lag {
	l := &Lag{read: read, since: map[types.UID]time.Time{}, took: prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "weir_builtin_collector_delete_lag_seconds",
		Help:    "How long the built-in garbage collector took from the end of an owner until it deleted a dependent without another, of some dependents. Shown in companion mode, by each replica.",
		Buckets: []float64{.05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 900},
	})}
	reg.MustRegister(l.took, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "weir_builtin_collector_oldest_garbage_seconds",
		Help: "How long the oldest of these dependents has stood since then; 0 if there is none. Shown in companion mode, by each replica.",
	}, l.oldest))
	return l
}

// Going is told of each object that is gone, before the graph is.
func (l *Lag) Going(uid types.UID) {
	l.deleted(uid)
	var left []types.UID
	l.read(func(g *graph.Graph) {
		if owner, there := g.Find(uid); !there || owner.Dependents == 0 || owner.Orphaning {
			return
		}
		for _, v := range g.SomeDependents(uid, mostOfAnyone) {
			if !v.Deleting && !slices.ContainsFunc(v.Owners, func(o graph.OwnerView) bool { return o.UID != uid && o.Verdict != "absent" }) {
				left = append(left, v.UID)
			}
		}
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, uid := range left {
		if _, known := l.since[uid]; !known && len(l.since) < mostWatched {
			l.since[uid] = time.Now()
		}
	}
}

// Showing is told of each object that a watch shows, before the graph is. One whose references were changed is watched no more: it may have
// another owner.
func (l *Lag) Showing(o *graph.Object) func() {
	l.mu.Lock()
	_, watched := l.since[o.UID]
	l.mu.Unlock()
	switch {
	case !watched:
	case o.Deleting:
		l.deleted(o.UID)
	default:
		same := false
		l.read(func(g *graph.Graph) { same, _ = g.Refers(o) })
		if !same {
			l.forget(o.UID)
		}
	}
	return nil
}

func (l *Lag) deleted(uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if since, watched := l.since[uid]; watched {
		l.took.Observe(time.Since(since).Seconds())
		delete(l.since, uid)
	}
}

func (l *Lag) forget(uids ...types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, uid := range uids {
		delete(l.since, uid)
	}
}

// Rewound is told that the history of the API server went back: what was seen to go may be there again.
func (l *Lag) Rewound() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.since)
}

// oldest forgets what went while no watch told of it.
func (l *Lag) oldest() float64 {
	l.mu.Lock()
	uids := make([]types.UID, 0, len(l.since))
	for uid := range l.since {
		uids = append(uids, uid)
	}
	l.mu.Unlock()
	l.read(func(g *graph.Graph) {
		uids = slices.DeleteFunc(uids, func(uid types.UID) bool { return !g.Deleted(uid) })
	})
	l.forget(uids...)
	l.mu.Lock()
	defer l.mu.Unlock()
	oldest := time.Duration(0)
	for _, since := range l.since {
		oldest = max(oldest, time.Since(since))
	}
	return oldest.Seconds()
}
