package follow

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
)

// opening are the kinds whose first list is taken in as it comes, and whether it has shown what is
// to become work. That waits for the end of the list: of the owners of what was shown many are
// still to come, and would be looked up, and what breaks off is forgotten.
type opening map[schema.GroupResource]bool

// hold takes out of uids what is to wait.
func (o opening) hold(g *graph.Graph, uids []types.UID) []types.UID {
	if len(o) == 0 {
		return uids
	}
	return slices.DeleteFunc(uids, func(uid types.UID) bool {
		v, found := g.Find(uid)
		_, waits := o[v.Kind]
		if waits = waits && found; waits {
			o[v.Kind] = true
		}
		return waits
	})
}

// workLocked is what becomes work now of dirty objects, which it reorders: those that are being
// deleted, and the rest.
func (s *Store) workLocked(dirty []types.UID) (ending, rest []types.UID) {
	if s.dirty.Load() == nil {
		return nil, nil
	}
	dirty = s.opening.hold(s.graph, dirty)
	n := 0
	for i, uid := range dirty {
		if s.graph.Terminating(uid) {
			dirty[i], dirty[n] = dirty[n], uid
			n++
		}
	}
	return dirty[:n], dirty[n:]
}

// open begins with the first list of a kind.
func (s *Store) open(kind schema.GroupResource) {
	s.mu.Lock()
	s.opening[kind] = false
	s.mu.Unlock()
	s.Apply(graph.ListBegins{Kind: kind})
}

// complete takes in the last events of the first list of a kind.
func (s *Store) complete(kind schema.GroupResource, last ...graph.Event) {
	waited := s.release(kind)
	s.Apply(append(last, graph.ListEnds{Kind: kind})...)
	if dirty := s.dirty.Load(); waited && dirty != nil {
		s.pending(*dirty)
	}
}

// abandon forgets what the first list of a kind has shown, as if it had never been: nothing follows
// from that, and nothing from what it did not show. The kind is as it was before, being listed or
// failing to be.
func (s *Store) abandon(kind schema.GroupResource) {
	const most = 1000
	for next := uint32(0); ; {
		s.mu.Lock()
		views, cursor := s.graph.Views(next, most)
		s.mu.Unlock()
		var events []graph.Event
		for _, v := range views {
			if v.Kind == kind {
				events = append(events, graph.Unlisted{Kind: kind, UID: v.UID})
			}
		}
		s.Apply(events...)
		if next = cursor; next == 0 {
			break
		}
	}
	s.release(kind)
}

// release has what is shown of a kind become work from now on, and tells whether some of it has
// waited.
func (s *Store) release(kind schema.GroupResource) (waited bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	waited = s.opening[kind]
	delete(s.opening, kind)
	return waited
}
