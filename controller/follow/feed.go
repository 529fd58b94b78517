package follow

import (
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/policies/v1alpha1"
)

// Feed brings one kind into the graph: it is the store of a reflector, and keeps nothing itself.
type Feed struct {
	Kind  schema.GroupResource
	Store *Store
	// seen is told of each object of the kind that comes, changes or goes; nil if no caller asks.
	seen      func(name string, how Change)
	listeners listeners
	// check is asked about each complete list before the graph gets it, level told when the graph
	// has everything.
	check func(list []any, resourceVersion string) error
	level func(listed bool)

	// Reached is the resourceVersion up to which the graph has everything of the kind; 0: that is
	// not known.
	Reached   atomic.Uint64
	reachedAt time.Time // when it came there; the reflector's alone
	// latest is the object that was written last, of those that are or were there.
	latest atomic.Pointer[metav1.PartialObjectMetadata]
	// behindNow is set when the watch broke. It is level again when it has reached until.
	behindNow atomic.Bool
	until     atomic.Uint64
	// cutOff is set while the kind is behind, and no request has been answered since its watch
	// ended but with 503.
	cutOff atomic.Bool
	// first is the first list while it comes; the reflector's alone.
	first *firstList
}

// listPiece is how many events of a list the graph takes in at once.
const listPiece = 256

// Change is what happened to an object, for those who are told of it by name.
type Change uint8

// What happened to an object.
const (
	There    Change = iota // it came or changed
	Deleting               // it is being deleted
	Went                   // it is gone
)

var _ cache.ResourceVersionUpdater = (*Feed)(nil)

// trim drops what the graph does not use.
func trim(m *metav1.PartialObjectMetadata) {
	m.ManagedFields = nil
	if m.DeletionTimestamp == nil || !slices.Contains(m.Finalizers, v1alpha1.Finalizer) { // policies are asked about those
		m.Labels, m.Annotations = nil, nil
	}
}

// Add takes in an object that the watch showed.
func (f *Feed) Add(obj any) error { return f.Update(obj) }

// Update takes in an object that the watch showed.
func (f *Feed) Update(obj any) error {
	m, ok := obj.(*metav1.PartialObjectMetadata)
	if !ok {
		return fmt.Errorf("watch of %s: unexpected %T", f.Kind, obj)
	}
	o := graph.ObjectOf(f.Kind, m)
	shown := f.listeners.showing(o)
	f.Store.Apply(graph.Observed{Object: o})
	for _, then := range shown {
		then()
	}
	f.latest.Store(m)
	f.Notify(m)
	return nil
}

// Delete takes in a deletion that the watch showed.
func (f *Feed) Delete(obj any) error {
	m, ok := obj.(*metav1.PartialObjectMetadata)
	if !ok {
		return fmt.Errorf("watch of %s: unexpected %T", f.Kind, obj)
	}
	f.listeners.going(m.UID)
	f.Store.Apply(graph.Gone{Kind: f.Kind, UID: m.UID})
	if f.seen != nil {
		f.seen(m.Name, Went)
	}
	return nil
}

// Replace takes in a complete list, in pieces, so that the others get at the graph in between.
func (f *Feed) Replace(list []any, resourceVersion string) error {
	if f.finish(list, resourceVersion) {
		return nil
	}
	if err := f.check(list, resourceVersion); err != nil {
		return err
	}
	events := make([]graph.Event, 0, listPiece)
	events = append(events, graph.ListBegins{Kind: f.Kind})
	var changed []*metav1.PartialObjectMetadata // those to tell of, once the graph has them
	var latest *metav1.PartialObjectMetadata
	for i, obj := range list {
		m, ok := obj.(*metav1.PartialObjectMetadata)
		if !ok {
			return fmt.Errorf("list of %s: unexpected %T", f.Kind, obj)
		}
		list[i] = nil // drop it as soon as the graph has it
		if latest == nil || VersionNumber(m.ResourceVersion) > VersionNumber(latest.ResourceVersion) {
			latest = m
		}
		events = append(events, graph.Observed{Object: graph.ObjectOf(f.Kind, m)})
		if f.seen != nil || m.DeletionTimestamp != nil {
			changed = append(changed, m)
		}
		if len(events) == listPiece {
			f.Store.Apply(events...)
			events = events[:0]
		}
	}
	f.Store.Apply(append(events, graph.ListEnds{Kind: f.Kind})...)
	f.complete(resourceVersion, latest)
	for _, m := range changed {
		f.Notify(m)
	}
	return nil
}

// complete notes that the graph has a complete list.
func (f *Feed) complete(resourceVersion string, latest *metav1.PartialObjectMetadata) {
	f.reach(VersionNumber(resourceVersion))
	f.latest.Store(latest)
	f.level(true)
}

// UpdateResourceVersion is told how far the watch has come, once the graph has what came: with each
// event, and about once a minute by a bookmark.
func (f *Feed) UpdateResourceVersion(resourceVersion string) {
	version := VersionNumber(resourceVersion)
	f.reach(version)
	if f.behindNow.Load() && version >= f.until.Load() {
		f.level(false)
	}
}

func (f *Feed) reach(version uint64) {
	f.Reached.Store(version)
	f.reachedAt = time.Now()
}

// reading is how far the history of the kind has come. The reflector asks.
func (f *Feed) reading() reading { return reading{f.Reached.Load(), f.reachedAt} }

// Resync does nothing: the graph is level with the watch, and nothing is delivered twice.
func (f *Feed) Resync() error { return nil }

// Notify has those told who ask about objects by name, or about deletions.
func (f *Feed) Notify(m *metav1.PartialObjectMetadata) {
	if m.DeletionTimestamp != nil {
		f.listeners.terminating(m)
	}
	switch {
	case f.seen == nil:
	case m.DeletionTimestamp != nil:
		f.seen(m.Name, Deleting)
	default:
		f.seen(m.Name, There)
	}
}
