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

// Store guards the graph. It has the only lock around it, and nothing that can block runs under
// that.
type Store struct {
	mu    sync.Mutex
	graph *graph.Graph
	// dirty receives the objects to decide about again, those that are being deleted apart; nil while
	// this process only follows.
	dirty atomic.Pointer[func(ending, rest []types.UID)]
	// changed receives the draining namespaces whose content has changed; nil while nothing drains.
	changed atomic.Pointer[func([]string)]
	// opening are the kinds of which nothing becomes work yet; guarded by mu.
	opening opening
}

// NewStore makes a Store with an empty graph.
func NewStore() *Store { return &Store{graph: graph.New(), opening: opening{}} }

// Lead turns dirty objects into work from now on, those that are being deleted apart, beginning with
// what is there to do already.
func (s *Store) Lead(dirty func(ending, rest []types.UID)) {
	s.dirty.Store(&dirty)
	s.pending(dirty)
}

// pending turns what there is to do already into work.
func (s *Store) pending(dirty func(ending, rest []types.UID)) {
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

// Apply takes in events in order.
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

// Drain has f told of the draining namespaces whose content changes, from now on.
func (s *Store) Drain(f func(names []string)) { s.changed.Store(&f) }

func (s *Store) notify(ending, rest []types.UID, changed []string) {
	if f := s.dirty.Load(); f != nil && len(ending)+len(rest) > 0 {
		(*f)(ending, rest)
	}
	if f := s.changed.Load(); f != nil && len(changed) > 0 {
		(*f)(changed)
	}
}

// Decide says what to do about an object. A lookup counts as under way from here on, so that the
// other dependents of the same owner do not ask too. They need not hear of it: they would only
// wait. One of low priority is under way when its turn comes: see decideLow.
func (s *Store) Decide(uid types.UID) graph.Action {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.graph.Decide(uid)
	if a.Verb == graph.Lookup && !a.LowPriority {
		s.graph.Apply(graph.LookupStarted{Claim: a.Claim})
	}
	return a
}

// DecideLow is decide when the turn of a lookup of low priority has come.
func (s *Store) DecideLow(uid types.UID) graph.Action {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.graph.Decide(uid)
	if a.Verb == graph.Lookup {
		s.graph.Apply(graph.LookupStarted{Claim: a.Claim})
	}
	return a
}

// Accepted leaves an object alone until the watch shows what the request did. Nothing becomes work
// by this.
func (s *Store) Accepted(a graph.Action) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.graph.Apply(graph.Accepted{Action: a})
}

// Still tells whether a decision is right for a live object: see graph.Still.
func (s *Store) Still(a graph.Action, live *metav1.PartialObjectMetadata) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.graph.Still(a, graph.ObjectOf(a.Object.Kind, live))
}

// Awaits tells whether an object that was read live waits for its dependents: see graph.Awaits.
func (s *Store) Awaits(kind schema.GroupResource, live *metav1.PartialObjectMetadata) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.graph.Awaits(graph.ObjectOf(kind, live))
}

// Rewound says why everything is being listed again; "" if it is not.
func (s *Store) Rewound() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.graph.Rewinding()
}

// History is in which history of the API server a live read is begun: see graph.NotFound.
func (s *Store) History() uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.graph.History()
}

// Stats are counts of the graph, as it is now.
func (s *Store) Stats() graph.Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.graph.Stats()
}

// Views copies the graph.
func (s *Store) Views() []graph.View { return slices.Collect(s.pieces(s.graph.Views)) }

func (s *Store) connected(uids []types.UID) []graph.View {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.graph.Connected(uids...)
}

// Read lets f look at the graph. f must not change it, block, or keep anything of it.
func (s *Store) Read(f func(*graph.Graph)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s.graph)
}

// Changes counts what events have changed of a kind; see graph.Changes.
func (s *Store) Changes(kind schema.GroupResource) (n uint64, followed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.graph.Changes(kind)
}

// Inventory is what a namespace holds, counted by kind.
func (s *Store) Inventory(namespace string) graph.Inventory {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.graph.Inventory(namespace)
}

// Content are the objects of a kind in a namespace, of which no more than a piece is copied at a
// time: what happens to the graph meanwhile shows, or does not. None of those that stay is left
// out; one may come twice if others go.
func (s *Store) Content(namespace string, kind schema.GroupResource) iter.Seq[graph.View] {
	return s.pieces(func(next uint32, n int) ([]graph.View, uint32) { return s.graph.Content(namespace, kind, next, n) })
}

// Find copies one object; false if the graph does not have it.
func (s *Store) Find(uid types.UID) (graph.View, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.graph.Find(uid)
}

// Deleted tells of an object of a kind that is followed whether it need not be deleted: see
// graph.Deleted.
func (s *Store) Deleted(uid types.UID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.graph.Deleted(uid)
}

// Dependents copies the objects that refer to another.
func (s *Store) Dependents(uid types.UID) []graph.View {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.graph.Dependents(uid)
}

// Incomplete names the kinds that may hold dependents of an object that were never seen.
func (s *Store) Incomplete(uid types.UID) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.graph.Incomplete(uid)
}

// Finalized copies the objects that carry a finalizer, piece by piece.
func (s *Store) Finalized(finalizer string) []graph.View {
	return slices.Collect(s.pieces(func(next uint32, n int) ([]graph.View, uint32) { return s.graph.Finalized(finalizer, next, n) }))
}

// pieces copies a part of the graph piece by piece; events go on in between.
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
