package follow

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
)

// listPiece is how many objects of a list the graph takes in at once.
const listPiece = 256

// coming is a list, as far as it has come. The graph has each object when it comes, and client-go
// none: it would keep the whole list, beside the graph, until that ends.
//
// Nothing is concluded from a list before its end: what it shows of a kind is no work until then. A
// first list that breaks off is forgotten. Of a later one what came is kept: it was there. Only what
// an hourly list shows is work at once, since nothing has happened before it.
type coming struct {
	number  uint64
	first   bool
	objects []*graph.Object                 // the last ones, which the graph does not have yet
	changed []*metav1.PartialObjectMetadata // those to tell of at its end
	why     string                          // why it cannot come after what was seen
	// upTo is up to which version the graph is held against the list; 0: it is not.
	upTo uint64
}

func (f *Feed) open(c *coming) {
	c.objects, c.changed, f.coming = nil, nil, nil
	f.Store.open(f.Kind, c.upTo == 0)
}

// abandon gives up a list that did not come to its end.
func (f *Feed) abandon(c *coming) {
	if c.first {
		f.Store.forget(f.Kind)
	}
	f.Store.release(f.Kind)
}

// take takes in an object of a list. The graph has it in pieces, so that the others get at the
// graph in between.
func (f *Feed) take(c *coming, m *metav1.PartialObjectMetadata) {
	trim(m)
	if f.seen != nil || m.DeletionTimestamp != nil {
		c.changed = append(c.changed, m)
	}
	if c.objects = append(c.objects, graph.ObjectOf(f.Kind, m)); len(c.objects) == listPiece {
		f.flush(c)
	}
}

// flush has the graph take in what has come. Of a list that contradicts what was seen it is the
// last.
func (f *Feed) flush(c *coming) {
	if c.why == "" {
		var wrong []fault
		wrong, c.why = f.Store.listed(c)
		f.faults(wrong)
	}
	clear(c.objects) // the graph has copied what it keeps
	c.objects = c.objects[:0]
}

// opening are the kinds of which a list holds work, and whether some waits for its end: of the
// owners of what was shown many are still to come, and would be looked up, and what breaks off is
// forgotten.
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

// open begins with a list of a kind, and has what it shows wait for its end, if it is to hold that.
func (s *Store) open(kind schema.GroupResource, hold bool) {
	if hold {
		s.mu.Lock()
		s.opening[kind] = false
		s.mu.Unlock()
	}
	s.Apply(graph.ListBegins{Kind: kind})
}

// listed takes in what a list has shown. It returns what the graph had wrong, and why the list
// cannot come after what was seen: then it takes in no more.
func (s *Store) listed(c *coming) (wrong []fault, why string) {
	var dirty []types.UID
	s.mu.Lock()
	for _, o := range c.objects {
		if !c.first {
			if why = s.graph.Contradicts(o); why != "" {
				break
			}
			wrong = append(wrong, faultOf(s.graph, o, c.upTo)...)
		}
		dirty = append(dirty, s.graph.Apply(graph.Observed{Object: o})...)
	}
	ending, rest := s.workLocked(dirty)
	changed := s.graph.ChangedNamespaces()
	s.mu.Unlock()
	s.notify(ending, rest, changed)
	return wrong, why
}

// complete takes in that the list of a kind has ended.
func (s *Store) complete(kind schema.GroupResource) {
	waited := s.close(kind)
	s.Apply(graph.ListEnds{Kind: kind})
	s.resume(waited)
}

// forget forgets what a first list has shown, as if it had never been: nothing follows from that,
// and nothing from what it did not show. The kind is as it was before, being listed or failing to
// be.
func (s *Store) forget(kind schema.GroupResource) {
	for v := range s.pieces(s.graph.Views) {
		if v.Kind == kind {
			s.Apply(graph.Unlisted{Kind: kind, UID: v.UID})
		}
	}
}

// release has what is shown of a kind become work from now on, and what has waited.
func (s *Store) release(kind schema.GroupResource) { s.resume(s.close(kind)) }

// close has what is shown of a kind become work from now on, and tells whether some of it has
// waited.
func (s *Store) close(kind schema.GroupResource) (waited bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	waited = s.opening[kind]
	delete(s.opening, kind)
	return waited
}

// resume has what there is to do become work, if some of it has waited.
func (s *Store) resume(waited bool) {
	if dirty := s.dirty.Load(); waited && dirty != nil {
		s.pending(*dirty)
	}
}
