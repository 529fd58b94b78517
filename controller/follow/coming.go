package follow

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
)

// listPiece is how many objects of a list the graph applies at once.
const listPiece = 256

// coming is a list under way. Each object goes to the graph when it comes, and none to client-go,
// which would keep the whole list in memory until its end.
//
// Nothing is concluded before its end from what a list does not show. What came of one that breaks
// off is kept until another has ended, since it was there.
type coming struct {
	number  uint64
	first   bool
	objects []*graph.Object                 // the last ones, which the graph does not have yet
	changed []*metav1.PartialObjectMetadata // those of which listeners are told at its end
	why     string                          // why it contradicts what was seen; "" if it does not
}

// open begins a list in the graph.
func (f *follower) open(c *coming) {
	c.objects, c.changed, f.coming = nil, nil, nil
	f.store.Apply(graph.ListBegins{Kind: f.Kind})
}

// take adds an object of a list. The graph applies them in pieces, and is free for others in
// between.
func (f *follower) take(c *coming, m *metav1.PartialObjectMetadata) {
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
func (f *follower) flush(c *coming) {
	if c.why == "" {
		c.why = f.store.listed(c)
	}
	clear(c.objects) // the graph has copied what it keeps
	c.objects = c.objects[:0]
}

// workLocked splits dirty objects into those that are being deleted and the rest. It reorders
// dirty.
func (s *Store) workLocked(dirty []types.UID) (ending, rest []types.UID) {
	if s.dirty.Load() == nil {
		return nil, nil
	}
	n := 0
	for i, uid := range dirty {
		if s.graph.Terminating(uid) {
			dirty[i], dirty[n] = dirty[n], uid
			n++
		}
	}
	return dirty[:n], dirty[n:]
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
