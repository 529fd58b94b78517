package shadow

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/weir-dev/weir/controller/follow"
	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/shadow/report"
)

// DefaultLate is how long the cluster's collector may take for what Weir has decided. It begins again after each failure, up to a quarter
// of an hour later, but mostly it is done within a second.
const DefaultLate = 2 * time.Minute

const (
	sweepEvery  = time.Second // between two looks at what is open
	reportEvery = 10 * time.Second
)

// Options are what a Shadow needs to know.
type Options struct {
	Store *follow.Store
	Ready func() error // nil once all kinds have been listed
	// Undiscovered are API groups that do not answer.
	Undiscovered func() []string
	// Namespaces are read of those that stand still.
	Namespaces typedcorev1.NamespaceInterface
	Late       time.Duration // DefaultLate if 0
	Report     string        // a file for the Report, written every 10 s; empty: none
	Registry   prometheus.Registerer
	Log        logr.Logger
}

// Shadow compares decisions with what happens.
type Shadow struct {
	Options
	metrics *metrics

	mu     sync.Mutex
	ledger *Ledger
}

// New makes one that has compared nothing yet.
func New(o Options) *Shadow {
	if o.Late == 0 {
		o.Late = DefaultLate
	}
	return &Shadow{Options: o, metrics: newMetrics(o.Registry), ledger: NewLedger(time.Now(), o.Late)}
}

// Decided takes in a decision. It is called by the workers, who send nothing.
func (s *Shadow) Decided(uid types.UID, a graph.Action) {
	v, there := s.Store.Find(uid)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ledger.Decided(time.Now(), uid, a, v, there)
}

// Going is told of each object that is gone, before the graph is.
func (s *Shadow) Going(uid types.UID) {
	var v graph.View
	var a graph.Action
	there := false
	s.Store.Read(func(g *graph.Graph) {
		if v, there = g.Find(uid); there {
			a = g.Decide(uid)
		}
	})
	if !there {
		return
	}
	s.mu.Lock()
	how := s.ledger.Gone(time.Now(), a, v)
	s.mu.Unlock()
	if how == report.Kept {
		s.Log.Info("deleted, and Weir would have kept it", "object", v.Ref.String(), "uid", uid, "why", a.Why)
	}
}

// Rewound is told that the history of the API server went back, before everything is listed again.
func (s *Shadow) Rewound(string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ledger.Rewound(time.Now())
}

// Run looks at what is open, and writes the report, until ctx ends.
func (s *Shadow) Run(ctx context.Context) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	s.mu.Lock()
	s.ledger.Since = time.Now() // from when there are decisions
	s.mu.Unlock()
	reported := time.Time{}
	for {
		s.sweep(ctx)
		if time.Since(reported) >= reportEvery {
			reported = time.Now()
			s.report()
		}
		select {
		case <-ctx.Done():
			s.report()
			return
		case <-tick.C:
		}
	}
}

// sweep decides again about what is open: that an object is gone, or has changed, makes no work for anybody.
func (s *Shadow) sweep(ctx context.Context) {
	s.mu.Lock()
	late, open := s.ledger.Overdue(time.Now())
	s.mu.Unlock()
	for _, a := range late {
		s.Log.Info("the cluster has not done what Weir would do", "object", a.Object.String(), "uid", a.Object.UID, "action", a.Verb.String(), "why", a.Why, "for", s.Late.String())
	}
	for _, uid := range open {
		var a graph.Action
		s.Store.Read(func(g *graph.Graph) { a = g.Decide(uid) })
		s.Decided(uid, a)
	}
	s.look(ctx)
	s.metrics.set(s.now())
}

func (s *Shadow) now() report.Report {
	ready := s.Ready() == nil
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ledger.Report(time.Now(), ready)
}

func (s *Shadow) report() {
	if s.Report == "" {
		return
	}
	if err := write(s.Report, s.now()); err != nil {
		s.Log.Error(err, "write the report")
	}
}

// write replaces a file as a whole: who reads it sees one report or the other.
func write(path string, r report.Report) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	next, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	_, err = next.Write(append(data, '\n'))
	if e := next.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Chmod(next.Name(), 0o644) //nolint:gosec // others may read it
	}
	if err == nil {
		err = os.Rename(next.Name(), path)
	}
	if err != nil {
		_ = os.Remove(next.Name()) // the first error says more
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
