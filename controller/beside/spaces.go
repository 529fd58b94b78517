package beside

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/kinds"
)

const (
	spacesLook = time.Second // between looks at all namespaces that are being deleted
	// readAfter is how long to wait for the controller before the namespace is read, and between two reads of one.
	readAfter = 5 * time.Second
	// mostReads are in one look, and mostSpaces are observed.
	mostReads, mostSpaces = 5, 1000
)

// SpacesReporter tells users.
type SpacesReporter interface {
	// NamespaceControllerSilent says on a namespace that the built-in namespace controller does not work, and that it does again.
	NamespaceControllerSilent(namespace graph.Ref, silent bool, text string)
}

// SpacesOptions are what Spaces need to know.
type SpacesOptions struct {
	Namespaces interface {
		Get(ctx context.Context, name string, o metav1.GetOptions) (*corev1.Namespace, error)
	}
	Content  func(namespace string) graph.Inventory
	Kinds    func() []graph.KindStats
	Now      func() time.Time // the API server's clock
	Stands   time.Duration    // as that of the canary: six times that is silence
	Reporter SpacesReporter
	Registry prometheus.Registerer
	Log      logr.Logger
}

// Spaces observe the built-in namespace controller by what it has to do anyway: how long it takes from the delete of a namespace until it has begun with
// it, which its conditions show, and from the last object that goes until the namespace does. A namespace that is made for it would wake all that acts
// on new namespaces. So nothing is known where none is deleted.
type Spaces struct {
	SpacesOptions
	lag           *prometheus.HistogramVec
	alive, oldest *prometheus.GaugeVec

	mu     sync.Mutex
	leads  time.Time // since when Run does; zero: it does not
	spaces map[string]*space
	acted  time.Time // when the controller was last seen to act
	silent bool
	said   graph.Ref // on what that was said
}

// NewSpaces makes one that has observed nothing.
func NewSpaces(o SpacesOptions) *Spaces {
	gauge := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, nil)
	}
	s := &Spaces{SpacesOptions: o, spaces: map[string]*space{},
		lag: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "weir_builtin_namespace_controller_lag_seconds",
			Help:    "How long the built-in namespace controller took, by step: from the delete of a namespace until it had begun with it (begin), and from the last object until it removed its finalizer (end). Shown in companion mode, by the leader.",
			Buckets: []float64{.1, .5, 1, 2.5, 5, 7.5, 10, 15, 30, 60, 300, 900, 3600},
		}, []string{"step"}),
		alive: gauge("weir_builtin_namespace_controller_alive",
			"1 if the built-in namespace controller did something that it was waited for, 0 if a namespace has waited for it for a minute and none went on meanwhile. Shown in companion mode, by the leader, once a namespace was deleted."),
		oldest: gauge("weir_builtin_namespace_controller_oldest_seconds",
			"How long the namespace has waited for the built-in namespace controller that has waited longest; 0 if none does. Shown in companion mode, by the leader."),
	}
	o.Registry.MustRegister(s.lag, s.alive, s.oldest)
	return s
}

// Deleting is told each time when a namespace is shown that is being deleted.
func (s *Spaces) Deleting(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if sp := s.spaces[name]; sp != nil {
		sp.changed = now
		return
	}
	if len(s.spaces) < mostSpaces {
		sp := &space{since: now, changed: now, seen: !s.leads.IsZero(), ref: graph.Ref{Kind: kinds.Namespaces, Name: name}}
		if sp.seen {
			sp.read = now // it says nothing yet
		}
		s.spaces[name] = sp
	}
}

// Gone is told of a namespace that is gone, or of which there is another by that name.
func (s *Spaces) Gone(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sp := s.spaces[name]
	if sp == nil {
		return
	}
	delete(s.spaces, name)
	if step, since := sp.waits(); step != "" {
		s.observe(sp, step, time.Since(since))
	}
}

// observe takes in that the controller did what it was waited for. What this process did not see from the beginning is no measure.
func (s *Spaces) observe(sp *space, step string, took time.Duration) {
	if s.leads.IsZero() || step == stepBegin && !sp.seen {
		return
	}
	s.lag.WithLabelValues(step).Observe(took.Seconds())
	s.alive.WithLabelValues().Set(1)
	s.acted = time.Now()
}

// Rewound is told that the history of the API server went back: everything is listed again.
func (s *Spaces) Rewound() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.spaces)
}

// Run looks at the namespaces that are being deleted until ctx ends.
func (s *Spaces) Run(ctx context.Context) {
	s.lead(time.Now())
	defer s.lead(time.Time{})
	tick := time.NewTicker(spacesLook)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, name := range s.look() {
			s.readOne(ctx, name)
		}
		s.tell()
	}
}

func (s *Spaces) lead(since time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leads, s.acted, s.silent = since, time.Time{}, false
	s.alive.Reset()
	s.oldest.Reset()
}

// look takes in what is in namespaces, and says which are to be read: those that were written, and those that have waited for a while.
func (s *Spaces) look() (read []string) {
	s.mu.Lock()
	names := make([]string, 0, len(s.spaces))
	for name := range s.spaces {
		names = append(names, name)
	}
	s.mu.Unlock()
	if len(names) == 0 {
		return nil
	}
	all := complete(s.Kinds())
	for _, name := range names {
		content := s.Content(name).Kinds
		s.mu.Lock()
		if sp := s.spaces[name]; sp != nil {
			now := time.Now()
			sp.holds(now, content, all)
			_, since := sp.waits()
			again := now.Sub(sp.read) >= readAfter
			written := sp.changed.After(sp.read) && (sp.begun.IsZero() || again) || sp.unread && again
			waits := !since.IsZero() && now.Sub(since) >= readAfter && now.Sub(sp.read) >= max(readAfter, now.Sub(since)/10)
			if (written || waits) && len(read) < mostReads {
				read = append(read, name)
			}
		}
		s.mu.Unlock()
	}
	return read
}

// readOne finds out what a namespace says. One that is gone, or another, is told by the watch.
func (s *Spaces) readOne(ctx context.Context, name string) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	began := time.Now()
	ns, err := s.Namespaces.Get(ctx, name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		s.Log.Info("cannot read a namespace that is being deleted; will try again", "namespace", name, "err", err.Error())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	sp := s.spaces[name]
	if sp == nil {
		return
	}
	sp.read, sp.unread = began, err != nil && !apierrors.IsNotFound(err)
	if err != nil || ns.DeletionTimestamp == nil {
		return
	}
	sp.ref.UID = ns.UID
	const rounding = time.Second // of deletionTimestamp
	if age := s.Now().Sub(ns.DeletionTimestamp.Time) - rounding; !sp.seen && age > time.Since(sp.since) {
		sp.since = time.Now().Add(-age)
	}
	if step, took := sp.tells(ns); step != "" {
		s.observe(sp, step, took)
	}
}

// tell says how long the controller is waited for, and when it becomes silent, and is not any more.
func (s *Spaces) tell() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	var oldest, waited time.Duration
	var on graph.Ref
	for _, sp := range s.spaces {
		step, since := sp.waits()
		if step == "" {
			continue
		}
		d := now.Sub(since)
		oldest = max(oldest, d)
		if d > waited && (step != stepEnd || !sp.pods) {
			waited, on = d, sp.ref
		}
	}
	s.oldest.WithLabelValues().Set(oldest.Seconds())
	after := 6 * s.Stands
	last := s.leads
	if s.acted.After(last) {
		last = s.acted
	}
	switch silent := waited >= after && now.Sub(last) >= after; {
	case silent && !s.silent:
		s.silent, s.said = true, on
		s.alive.WithLabelValues().Set(0)
		s.report(fmt.Sprintf("the built-in namespace controller does not work: namespace %s has waited for it for %s, and it did nothing in any other. "+
			"Namespaces stay Terminating. See the log of kube-controller-manager", on.Name, waited.Round(time.Second)))
	case s.silent && s.acted.After(s.leads) && now.Sub(s.acted) < after:
		s.silent = false
		s.report("the built-in namespace controller works again")
	}
}

func (s *Spaces) report(text string) {
	s.Log.Info(text, "namespace", s.said.Name)
	s.Reporter.NamespaceControllerSilent(s.said, s.silent, text)
}
