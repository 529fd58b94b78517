package follow

import (
	"iter"
	"slices"
	"sync"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
)

// Store guards the graph with the only lock around it. Nothing that can block runs under that lock.
type Store struct {
	mu    sync.Mutex
	graph *graph.Graph
	// dirty gets the objects to decide about again, first those that are being deleted. It is nil
	// while this process only follows.
	dirty atomic.Pointer[func(ending, rest []types.UID)]
	// changed gets the draining namespaces whose content has changed; nil while nothing drains.
	changed atomic.Pointer[func([]string)]
}

// NewStore returns a Store with an empty graph.
func NewStore() *Store { return &Store{graph: graph.New()} }

// Lead passes dirty objects to a function from now on, beginning with all that there is to do.
func (s *Store) Lead(dirty func(ending, rest []types.UID)) {
	s.dirty.Store(&dirty)
	const piece = 1000
	for next := uint32(0); ; {
		s.mu.Lock()
		uids, cursor := s.graph.Pending(next, piece)
		ending, rest := s.workLocked(uids)
		s.mu.Unlock()
		dirty(ending, rest)
		if cursor == 0 {
			return
		}
		next = cursor
	}
}

// Apply applies events in order.
func (s *Store) Apply(events ...graph.Event) {
	var dirty []types.UID
	s.mu.Lock()
	for _, ev := range events {
		if d := s.graph.Apply(ev); dirty == nil {
			dirty = d
		} else {
			dirty = append(dirty, d...)
		}
	}
	ending, rest := s.workLocked(dirty)
	changed := s.graph.ChangedNamespaces()
	s.mu.Unlock()
	s.notify(ending, rest, changed)
}

// Drain passes the draining namespaces whose content changes to f, from now on.
func (s *Store) Drain(f func(names []string)) { s.changed.Store(&f) }

func (s *Store) notify(ending, rest []types.UID, changed []string) {
	if f := s.dirty.Load(); f != nil && len(ending)+len(rest) > 0 {
		(*f)(ending, rest)
	}
	if f := s.changed.Load(); f != nil && len(changed) > 0 {
		(*f)(changed)
	}
}

// Decide returns what to do about an object. A lookup counts as under way from here on, so that
// other dependents of the same owner do not ask too; they are not marked, since they would only
// wait. A lookup of low priority begins when its turn comes: see DecideLow.
func (s *Store) Decide(uid types.UID) graph.Action { return s.decide(uid, false) }

// DecideLow is Decide when the turn of a lookup of low priority has come.
func (s *Store) DecideLow(uid types.UID) graph.Action { return s.decide(uid, true) }

func (s *Store) decide(uid types.UID, low bool) graph.Action {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.graph.Decide(uid)
	if a.Verb == graph.Lookup && (low || !a.LowPriority) {
		s.graph.Apply(graph.LookupStarted{Claim: a.Claim})
	}
	return a
}

// Accepted leaves an object alone until the watch shows what the request did. It queues nothing.
func (s *Store) Accepted(a graph.Action) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.graph.Apply(graph.Accepted{Action: a})
}

// Read lets f look at the graph. f must not change it, block, or keep anything of it.
func (s *Store) Read(f func(*graph.Graph)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s.graph)
}

// read returns what f finds in the graph.
func read[T any](s *Store, f func(*graph.Graph) T) (found T) {
	s.Read(func(g *graph.Graph) { found = f(g) })
	return found
}

// Still reports whether a decision still holds for a live object: see graph.Still.
func (s *Store) Still(a graph.Action, live *metav1.PartialObjectMetadata) bool {
	return read(s, func(g *graph.Graph) bool { return g.Still(a, graph.ObjectOf(a.Object.Kind, live)) })
}

// Awaits reports whether an object that was read live waits for its dependents: see graph.Awaits.
func (s *Store) Awaits(kind schema.GroupResource, live *metav1.PartialObjectMetadata) bool {
	return read(s, func(g *graph.Graph) bool { return g.Awaits(graph.ObjectOf(kind, live)) })
}

// Rewound returns why everything is being listed again; "" if it is not.
func (s *Store) Rewound() string { return read(s, (*graph.Graph).Rewinding) }

// History returns the history in which a live read begins: see graph.NotFound.
func (s *Store) History() uint32 { return read(s, (*graph.Graph).History) }

// Stats returns the counts of the graph.
func (s *Store) Stats() graph.Stats { return read(s, (*graph.Graph).Stats) }

// Views copies the graph.
func (s *Store) Views() []graph.View { return slices.Collect(s.pieces(s.graph.Views)) }

// Changes returns how often objects of a kind have changed: see graph.Changes.
func (s *Store) Changes(kind schema.GroupResource) (n uint64, followed bool) {
	s.Read(func(g *graph.Graph) { n, followed = g.Changes(kind) })
	return n, followed
}

// Inventory returns what a namespace holds, counted by kind.
func (s *Store) Inventory(namespace string) graph.Inventory {
	return read(s, func(g *graph.Graph) graph.Inventory { return g.Inventory(namespace) })
}

// Content returns the objects of a kind in a namespace. It copies a piece at a time, and the graph
// may change in between. No object that stays is left out; one may come twice if others go.
func (s *Store) Content(namespace string, kind schema.GroupResource) iter.Seq[graph.View] {
	return s.pieces(func(next uint32, n int) ([]graph.View, uint32) {
		return s.graph.Content(namespace, kind, next, n)
	})
}

// Find returns one object; false if the graph does not have it.
func (s *Store) Find(uid types.UID) (v graph.View, found bool) {
	s.Read(func(g *graph.Graph) { v, found = g.Find(uid) })
	return v, found
}

// Deleted reports whether an object of a followed kind need not be deleted: see graph.Deleted.
func (s *Store) Deleted(uid types.UID) bool {
	return read(s, func(g *graph.Graph) bool { return g.Deleted(uid) })
}

// Dependents returns the objects that refer to another.
func (s *Store) Dependents(uid types.UID) []graph.View {
	return read(s, func(g *graph.Graph) []graph.View { return g.Dependents(uid) })
}

// Incomplete names the kinds that may hold dependents of an object that were never seen.
func (s *Store) Incomplete(uid types.UID) string {
	return read(s, func(g *graph.Graph) string { return g.Incomplete(uid) })
}

// Finalized returns the objects that carry a finalizer. It copies a piece at a time.
func (s *Store) Finalized(finalizer string) []graph.View {
	return slices.Collect(s.pieces(func(next uint32, n int) ([]graph.View, uint32) {
		return s.graph.Finalized(finalizer, next, n)
	}))
}

// pieces yields a part of the graph that is copied a piece at a time; events go on in between.
func (s *Store) pieces(piece func(next uint32, n int) ([]graph.View, uint32)) iter.Seq[graph.View] {
	const most = 1000
	return func(yield func(graph.View) bool) {
		for next := uint32(0); ; {
			s.mu.Lock()
			views, cursor := piece(next, most)
			s.mu.Unlock()
			for _, v := range views {
				if !yield(v) {
					return
				}
			}
			if cursor == 0 {
				return
			}
			next = cursor
		}
	}
}
