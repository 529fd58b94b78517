package follow

import (
	"fmt"
	"slices"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/policies/v1beta1"
)

// Feed is the store of one kind's reflector. It passes everything to the graph, and keeps nothing.
type Feed struct {
	Kind  schema.GroupResource
	Store *Store
	// seen is called for each object of the kind that comes, changes or goes. It may be nil.
	seen     func(m *metav1.PartialObjectMetadata, how Change)
	listener Listener
	// level is called with the number of a list that has ended, when the graph has all of it.
	level func(list uint64)

	// Reached is the resourceVersion up to which the graph has everything of the kind; 0 if that is
	// not known.
	Reached atomic.Uint64
	// coming is the list that has come, until client-go has it. Only the reflector uses it.
	coming *coming
}

// Change is what happened to an object.
type Change uint8

// The changes.
const (
	There    Change = iota // it came or changed
	Deleting               // it is being deleted
	Went                   // it is gone
)

var _ cache.ResourceVersionUpdater = (*Feed)(nil)

// trim drops what the graph does not use.
func trim(m *metav1.PartialObjectMetadata) {
	m.ManagedFields = nil
	if m.DeletionTimestamp == nil || !slices.Contains(m.Finalizers, v1beta1.Finalizer) { // policies are asked about those
		m.Labels, m.Annotations = nil, nil
	}
}

// Add applies an object that the watch showed.
func (f *Feed) Add(obj any) error { return f.Update(obj) }

// Update applies an object that the watch showed.
func (f *Feed) Update(obj any) error {
	m, ok := obj.(*metav1.PartialObjectMetadata)
	if !ok {
		return fmt.Errorf("watch of %s: unexpected %T", f.Kind, obj)
	}
	o := graph.ObjectOf(f.Kind, m)
	var shown func()
	if f.listener.Showing != nil {
		shown = f.listener.Showing(o)
	}
	f.Store.Apply(graph.Observed{Object: o})
	if shown != nil {
		shown()
	}
	f.notify(m)
	return nil
}

// Delete applies a deletion that the watch showed.
func (f *Feed) Delete(obj any) error {
	m, ok := obj.(*metav1.PartialObjectMetadata)
	if !ok {
		return fmt.Errorf("watch of %s: unexpected %T", f.Kind, obj)
	}
	tell(f.listener.Going, m.UID)
	f.Store.Apply(graph.Gone{Kind: f.Kind, UID: m.UID})
	if f.seen != nil {
		f.seen(m, Went)
	}
	return nil
}

// Replace completes a list, whose objects the graph has already.
func (f *Feed) Replace(_ []any, resourceVersion string) error {
	c := f.coming
	if c == nil {
		return fmt.Errorf("list of %s: none has come", f.Kind)
	}
	f.coming = nil
	f.Store.Apply(graph.ListEnds{Kind: f.Kind})
	f.Reached.Store(graph.VersionNumber(resourceVersion))
	f.level(c.number)
	for _, m := range c.changed {
		f.notify(m)
	}
	return nil
}

// UpdateResourceVersion notes how far the watch has come: with each event, once the graph has it,
// and about once a minute by a bookmark.
func (f *Feed) UpdateResourceVersion(resourceVersion string) {
	f.Reached.Store(graph.VersionNumber(resourceVersion))
}

// Resync does nothing: nothing is delivered twice.
func (f *Feed) Resync() error { return nil }

// notify calls those who follow objects by name, or deletions.
func (f *Feed) notify(m *metav1.PartialObjectMetadata) {
	if m.DeletionTimestamp != nil {
		tell(f.listener.Terminating, m)
	}
	switch {
	case f.seen == nil:
	case m.DeletionTimestamp != nil:
		f.seen(m, Deleting)
	default:
		f.seen(m, There)
	}
}
