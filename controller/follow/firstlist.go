package follow

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/controller/graph"
)

// firstList is what a kind begins with of which nothing was seen before, as far as it has come. The
// graph has each object when it comes, and client-go none: it would keep the whole list, beside the
// graph, until that ends, and so with every kind while a process starts. A later list is kept
// whole, because it is held against what was seen before the graph has it.
//
// Nothing is concluded from a list before its end. Until then the kind is being listed, and what
// was shown of it is no work; what breaks off is forgotten.
type firstList struct {
	events  []graph.Event                   // the last ones, which the graph does not have yet
	changed []*metav1.PartialObjectMetadata // those to tell of at its end
	latest  *metav1.PartialObjectMetadata   // what was written last
	version string                          // of it all
}

func (f *Feed) open() {
	f.first = &firstList{}
	f.Store.open(f.Kind)
}

// abandon forgets what a list has shown that did not come to its end.
func (f *Feed) abandon() {
	f.first = nil
	f.Store.abandon(f.Kind)
}

// take takes in an object of the first list. The graph has it in pieces, so that the others get at
// the graph in between.
func (f *Feed) take(m *metav1.PartialObjectMetadata) {
	first := f.first
	trim(m)
	if first.latest == nil || VersionNumber(m.ResourceVersion) > VersionNumber(first.latest.ResourceVersion) {
		first.latest = m
	}
	if f.seen != nil || m.DeletionTimestamp != nil {
		first.changed = append(first.changed, m)
	}
	first.events = append(first.events, graph.Observed{Object: graph.ObjectOf(f.Kind, m)})
	if len(first.events) == listPiece {
		f.Store.Apply(first.events...)
		clear(first.events) // the graph has copied what it keeps
		first.events = first.events[:0]
	}
}

// finish takes in that client-go has a complete list. False: it is another than the one that was
// taken in as it came.
func (f *Feed) finish(list []any, resourceVersion string) bool {
	first := f.first
	if first == nil {
		return false
	}
	if len(list) > 0 || resourceVersion != first.version {
		f.abandon()
		return false
	}
	f.first = nil
	f.Store.complete(f.Kind, first.events...)
	f.complete(resourceVersion, first.latest)
	for _, m := range first.changed {
		f.Notify(m)
	}
	return true
}
