package shadow

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/follow"
	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/internal/tools/shadow/report"
)

// DefaultLate is how long the cluster's collector may take for what Weir has decided. It retries
// after failures, up to a quarter of an hour later, but mostly it is done within a second.
const DefaultLate = 2 * time.Minute

const sweepEvery = time.Second // the time between two sweeps

// Options configure a Shadow.
type Options struct {
	Store *follow.Store
	Ready func() error // returns nil once all kinds have been listed
	// Undiscovered returns the group versions that do not answer.
	Undiscovered func() []string
	Late         time.Duration // DefaultLate if 0
	Registry     prometheus.Registerer
	Log          logr.Logger
}

// Shadow compares decisions with what happens in the cluster.
type Shadow struct {
	Options
	metrics *metrics

	mu     sync.Mutex
	ledger *Ledger
}

// New returns a Shadow that has compared nothing yet.
func New(o Options) *Shadow {
	o.Late = cmp.Or(o.Late, DefaultLate)
	return &Shadow{Options: o, metrics: newMetrics(o.Registry), ledger: NewLedger(time.Now(), o.Late)}
}

// Decided records a decision. The workers call it, and send nothing.
func (s *Shadow) Decided(uid types.UID, a graph.Action) {
	v, there := s.Store.Find(uid)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ledger.Decided(time.Now(), uid, a, v, there)
}

// Showing is called with each object from a watch, before the graph gets it. The caller must call
// the returned function once the graph has the object; nil if there is nothing to do. The beginning
// of a deletion is recorded here, because an object may be gone before a worker looks at it.
func (s *Shadow) Showing(o *graph.Object) func() {
	var before graph.View
	var decided graph.Action
	same, there := false, false
	s.Store.Read(func(g *graph.Graph) {
		if same, there = g.Refers(o); !there || same && !o.Deleting {
			return
		}
		before, _ = g.Find(o.UID)
		decided = g.Decide(o.UID)
	})
	if there && o.Deleting && !before.Deleting {
		s.Going(o.UID)
		return nil
	}
	freed := missed(before.Owners, o.Owners)
	follows := len(o.Owners) > 0 && !o.Deleting && (!there || !same) && decided.Verb != graph.Delete &&
		decided.Verb != graph.Release
	if !follows && len(freed) == 0 {
		return nil
	}
	return func() {
		s.freed(freed)
		if follows {
			s.shown(o.UID, before, there)
		}
	}
}

// freed is called with owners that an object blocks no more, and that the cluster does not check
// again for that.
func (s *Shadow) freed(owners []types.UID) {
	for _, uid := range owners {
		goes := false
		s.Store.Read(func(g *graph.Graph) {
			a := g.Decide(uid)
			goes = a.Verb == graph.Unfinalize && a.Finalizer == metav1.FinalizerDeleteDependents
		})
		if goes {
			s.mu.Lock()
			s.ledger.Wrote(uid, nothingBlocks)
			s.mu.Unlock()
		}
	}
}

// shown is called once the graph has an object that is new, or whose references have changed. The
// decision about it now, or once an owner was looked up, follows from that write.
func (s *Shadow) shown(uid types.UID, before graph.View, edited bool) {
	purpose := ""
	s.Store.Read(func(g *graph.Graph) {
		v, there := g.Find(uid)
		if verb := g.Decide(uid).Verb; !there || verb != graph.Delete && verb != graph.Release && verb != graph.Lookup {
			return
		}
		if edited && before.Owners == nil {
			before.Owners = []graph.OwnerView{}
		}
		purpose = written(before.Owners, v)
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ledger.Wrote(uid, purpose)
}

// Going is called with each object that is gone, or begins to be deleted, before the graph is told.
func (s *Shadow) Going(uid types.UID) {
	var v graph.View
	var a graph.Action
	there := false
	s.Store.Read(func(g *graph.Graph) {
		if v, there = g.Find(uid); there {
			a, v = g.Decide(uid), withOrphaned(g, v)
		}
	})
	if !there {
		return
	}
	s.mu.Lock()
	how := s.ledger.Gone(time.Now(), a, v)
	s.mu.Unlock()
	if how == report.Kept {
		s.Log.Info("deleted, and Weir would have kept it", "object", bounded(v.String(), mostName), "uid", uid, "why",
			bounded(a.Why, mostWhy))
	}
}

// Rewound is called when the history of the API server went back, before everything is listed
// again.
func (s *Shadow) Rewound(string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ledger.Rewound(time.Now())
}

// Run checks open decisions until ctx ends.
func (s *Shadow) Run(ctx context.Context) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	s.mu.Lock()
	s.ledger.Since = time.Now() // the time of the first decisions
	s.mu.Unlock()
	for {
		s.sweep()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// sweep decides open decisions again: no worker does, when an object is gone or has changed.
func (s *Shadow) sweep() {
	s.see()
	late, open := s.overdue(time.Now())
	for _, d := range late {
		s.Log.Info("the cluster has not done what Weir would do", "object", d.Object, "uid", d.UID, "action", d.Verb, "why",
			d.Why, "on purpose", d.OnPurpose, "for", s.Late.String())
	}
	for _, uid := range open {
		var a graph.Action
		s.Store.Read(func(g *graph.Graph) { a = g.Decide(uid) })
		s.Decided(uid, a)
	}
	s.metrics.set(s.now())
}

// overdue turns what is late at now into differences. A decision that becomes late meanwhile waits
// for the next sweep, because its purpose was not looked up.
func (s *Shadow) overdue(now time.Time) (late []report.Difference, open []types.UID) {
	s.mu.Lock()
	due := s.ledger.Due(now)
	s.mu.Unlock()
	purposes := map[types.UID]string{}
	for _, a := range due {
		s.Store.Read(func(g *graph.Graph) {
			if v, there := g.Find(a.Object.UID); there {
				purposes[v.UID] = onPurpose(g, a, v)
			}
		})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ledger.Overdue(now, purposes)
}

// see records which kinds are seen and which are not.
func (s *Shadow) see() {
	ready, unseen := s.Ready() == nil, notSeen(s.Store.Stats().Kinds, s.Undiscovered())
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ledger.sight.look(time.Now(), ready, unseen)
}

func (s *Shadow) now() report.Report {
	ready := s.Ready() == nil
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ledger.Report(time.Now(), ready)
}
