package follow

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/weir-dev/weir/controller/graph"
)

// firstList is what a watch begins with that nothing of its kind was seen before, as far as it has come. The graph has each object when it
// comes, and client-go none: it would keep the whole list, beside the graph, until that ends, and so with every kind while a process
// starts. A later list is kept whole, because it is held against what was seen before the graph has it.
//
// Nothing is concluded from a list before its end, which the API server marks with a bookmark. Until then the kind is being listed, and
// what was shown of it is no work; what breaks off is forgotten.
type firstList struct {
	events  []graph.Event                               // the last ones, which the graph does not have yet
	changed map[types.UID]*metav1.PartialObjectMetadata // those to tell of at its end
	latest  *metav1.PartialObjectMetadata               // what was written last
	version string                                      // at its end
}

// takeIn takes in the first list as it comes, and returns the watch from the bookmark at its end on. What ends before is client-go's to
// begin again.
func (f *follower) takeIn(ctx context.Context, w watch.Interface) (watch.Interface, error) {
	f.begin()
	for e := range w.ResultChan() { // it ends with ctx, too
		switch ended, err := f.take(e); {
		case ended:
			end := make(chan watch.Event, 1)
			end <- e
			return &listed{w, end}, nil
		case err != nil:
			return f.brokeOff(ctx, w, err)
		}
	}
	return f.brokeOff(ctx, w, nil)
}

// brokeOff is what client-go is told of a first list that did not come to its end.
func (f *follower) brokeOff(ctx context.Context, w watch.Interface, err error) (watch.Interface, error) {
	if ctx.Err() != nil { // who ended it has the graph forget the whole kind, or ends the process
		w.Stop()
		return watch.NewFake(), nil // shows nothing
	}
	f.abandon()
	if err != nil {
		w.Stop()
		return nil, err
	}
	return w, nil
}

// listed is a watch whose first list was taken in. Its end comes first of it: to client-go, the list was empty.
type listed struct {
	watch.Interface
	end chan watch.Event
}

// ResultChan implements watch.Interface. client-go reads up to the end of a list, and asks again for what follows.
func (l *listed) ResultChan() <-chan watch.Event {
	if len(l.end) > 0 {
		return l.end
	}
	return l.Interface.ResultChan()
}

func (f *Feed) begin() {
	f.first = &firstList{changed: map[types.UID]*metav1.PartialObjectMetadata{}}
	f.Store.open(f.Kind)
}

// abandon forgets what a list has shown that did not come to its end.
func (f *Feed) abandon() {
	f.first = nil
	f.Store.abandon(f.Kind)
}

// take takes in what comes of the first list. What changes or goes before its end is part of it: an object that goes is not listed, no more.
func (f *Feed) take(e watch.Event) (ended bool, err error) {
	if e.Type == watch.Error {
		return false, apierrors.FromObject(e.Object)
	}
	m, ok := e.Object.(*metav1.PartialObjectMetadata)
	if !ok {
		return false, fmt.Errorf("list of %s: unexpected %T", f.Kind, e.Object)
	}
	first := f.first
	switch e.Type {
	case watch.Added, watch.Modified:
		trim(m)
		if first.latest == nil || VersionNumber(m.ResourceVersion) > VersionNumber(first.latest.ResourceVersion) {
			first.latest = m
		}
		if f.seen != nil || m.DeletionTimestamp != nil {
			first.changed[m.UID] = m
		}
		f.gather(graph.Observed{Object: graph.ObjectOf(f.Kind, m)})
	case watch.Deleted:
		delete(first.changed, m.UID)
		f.gather(graph.Unlisted{Kind: f.Kind, UID: m.UID})
	case watch.Bookmark:
		first.version = m.ResourceVersion
		return m.Annotations[metav1.InitialEventsAnnotationKey] == "true", nil
	default:
		return false, fmt.Errorf("list of %s: unexpected %s", f.Kind, e.Type)
	}
	return false, nil
}

// gather has the graph take in an event of the first list, in pieces, so that the others get at the graph in between.
func (f *Feed) gather(ev graph.Event) {
	first := f.first
	first.events = append(first.events, ev)
	if len(first.events) == listPiece {
		f.Store.Apply(first.events...)
		clear(first.events) // the graph has copied what it keeps
		first.events = first.events[:0]
	}
}

// finish takes in that client-go has a complete list. False: it is another than the one that was taken in as it came.
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
