package follow

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/policies/v1beta1"
)

// Change is what happened to an object.
type Change uint8

// The changes.
const (
	There    Change = iota // it came or changed
	Deleting               // it is being deleted
	Went                   // it is gone
)

// A follower is the store of its reflector. It passes everything to the graph, and keeps nothing.
var _ cache.ResourceVersionUpdater = (*follower)(nil)

// trim drops what the graph does not use.
func trim(m *metav1.PartialObjectMetadata) {
	m.ManagedFields = nil
	if m.DeletionTimestamp == nil || !slices.Contains(m.Finalizers, v1beta1.Finalizer) { // policies are asked about those
		m.Labels, m.Annotations = nil, nil
	}
}

// Add applies an object that the watch showed.
func (f *follower) Add(obj any) error { return f.Update(obj) }

// Update applies an object that the watch showed.
func (f *follower) Update(obj any) error {
	m, ok := obj.(*metav1.PartialObjectMetadata)
	if !ok {
		return fmt.Errorf("watch of %s: unexpected %T", f.Kind, obj)
	}
	o := graph.ObjectOf(f.Kind, m)
	var shown func()
	if f.listener.Showing != nil {
		shown = f.listener.Showing(o)
	}
	f.store.Apply(graph.Observed{Object: o})
	if shown != nil {
		shown()
	}
	f.notify(m)
	return nil
}

// Delete applies a deletion that the watch showed.
func (f *follower) Delete(obj any) error {
	m, ok := obj.(*metav1.PartialObjectMetadata)
	if !ok {
		return fmt.Errorf("watch of %s: unexpected %T", f.Kind, obj)
	}
	tell(f.listener.Going, m.UID)
	f.store.Apply(graph.Gone{Kind: f.Kind, UID: m.UID})
	if f.seen != nil {
		f.seen(m, Went)
	}
	return nil
}

// Replace completes a list, whose objects the graph has already.
func (f *follower) Replace(_ []any, resourceVersion string) error {
	c := f.coming
	if c == nil {
		return fmt.Errorf("list of %s: none has come", f.Kind)
	}
	f.coming = nil
	f.store.Apply(graph.ListEnds{Kind: f.Kind})
	f.Reached.Store(graph.VersionNumber(resourceVersion))
	f.level(c.number)
	for _, m := range c.changed {
		f.notify(m)
	}
	return nil
}

// UpdateResourceVersion notes how far the watch has come: with each event, once the graph has it,
// and about once a minute by a bookmark.
func (f *follower) UpdateResourceVersion(resourceVersion string) {
	f.Reached.Store(graph.VersionNumber(resourceVersion))
}

// Resync does nothing: nothing is delivered twice.
func (f *follower) Resync() error { return nil }

// notify calls those who follow objects by name, or deletions.
func (f *follower) notify(m *metav1.PartialObjectMetadata) {
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
