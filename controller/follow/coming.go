package follow

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
)

// listPiece is how many objects of a list the graph applies at once.
const listPiece = 256

// coming is a list under way. Each object goes to the graph when it comes, and none to client-go,
// which would keep the whole list in memory until its end.
//
// Nothing is concluded from a list before its end, and what it shows becomes no work. A first list
// that breaks off is forgotten; what came of a later one is kept, since it was there. Only the
// objects of an hourly list become work at once.
type coming struct {
	number  uint64
	first   bool
	calm    bool                            // an hourly list, whose objects become work at once
	objects []*graph.Object                 // the last ones, which the graph does not have yet
	changed []*metav1.PartialObjectMetadata // those of which listeners are told at its end
	why     string                          // why it contradicts what was seen; "" if it does not
}

// open begins a list in the graph.
func (f *Feed) open(c *coming) {
	c.objects, c.changed, f.coming = nil, nil, nil
	f.Store.open(f.Kind, !c.calm)
}

// abandon gives up a list that broke off.
func (f *Feed) abandon(c *coming) {
	if c.first {
		f.Store.forget(f.Kind)
	}
	f.Store.release(f.Kind)
}

// take adds an object of a list. The graph applies them in pieces, and is free for others in
// between.
func (f *Feed) take(c *coming, m *metav1.PartialObjectMetadata) {
	trim(m)
	if f.seen != nil || m.DeletionTimestamp != nil {
		c.changed = append(c.changed, m)
	}
	if c.objects = append(c.objects, graph.ObjectOf(f.Kind, m)); len(c.objects) == listPiece {
		f.flush(c)
	}
}

// flush applies the last objects of a list. After a contradiction nothing more of the list is
// applied.
func (f *Feed) flush(c *coming) {
	if c.why == "" {
		c.why = f.Store.listed(c)
	}
	clear(c.objects) // the graph has copied what it keeps
	c.objects = c.objects[:0]
}

// opening are the kinds whose dirty objects wait for the end of a list, and whether some do. Many
// of their owners are still to come, and would be looked up; and a first list that breaks off is
// forgotten.
type opening map[schema.GroupResource]bool

// hold removes from uids the objects that wait.
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

// workLocked splits dirty objects into those that are being deleted and the rest, without those
// that wait for a list. It reorders dirty.
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

// open begins a list of a kind. If hold is true, what it shows waits for its end.
func (s *Store) open(kind schema.GroupResource, hold bool) {
	if hold {
		s.mu.Lock()
		s.opening[kind] = false
		s.mu.Unlock()
	}
	s.Apply(graph.ListBegins{Kind: kind})
}

// listed applies objects of a list. It returns why the list contradicts what was seen; then it
// stops.
func (s *Store) listed(c *coming) (why string) {
	var dirty []types.UID
	s.mu.Lock()
	for _, o := range c.objects {
		if !c.first {
			if why = s.graph.Contradicts(o); why != "" {
				break
			}
		}
		dirty = append(dirty, s.graph.Apply(graph.Observed{Object: o})...)
	}
	ending, rest := s.workLocked(dirty)
	changed := s.graph.ChangedNamespaces()
	s.mu.Unlock()
	s.notify(ending, rest, changed)
	return why
}

// complete ends the list of a kind.
func (s *Store) complete(kind schema.GroupResource) {
	waited := s.close(kind)
	s.Apply(graph.ListEnds{Kind: kind})
	s.resume(waited)
}

// forget removes what a first list has shown, and concludes nothing from that. The kind goes on
// listing or failing as before.
func (s *Store) forget(kind schema.GroupResource) {
	for v := range s.pieces(s.graph.Views) {
		if v.Kind == kind {
			s.Apply(graph.Unlisted{Kind: kind, UID: v.UID})
		}
	}
}

// release ends the wait of a kind's objects.
func (s *Store) release(kind schema.GroupResource) { s.resume(s.close(kind)) }

// close lets a kind's objects become work from now on, and reports whether some have waited.
func (s *Store) close(kind schema.GroupResource) (waited bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	waited = s.opening[kind]
	delete(s.opening, kind)
	return waited
}

// resume queues all that there is to do, if some of it has waited.
func (s *Store) resume(waited bool) {
	if dirty := s.dirty.Load(); waited && dirty != nil {
		s.pending(*dirty)
	}
}
