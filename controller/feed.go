package controller

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"

	"github.com/weir-dev/weir/controller/graph"
)

// feed brings one kind into the graph: it is the store of a reflector, and keeps nothing itself.
type feed struct {
	kind  schema.GroupResource
	store *store
	// seen is told of each object of the kind that comes, changes or goes; nil if nobody asks.
	seen func(name string, how change)
	// terminating is told of each object that is being deleted, when the graph has it; nil if nobody asks.
	terminating func(*metav1.PartialObjectMetadata)
}

// change is what happened to an object, for those who are told of it by name.
type change uint8

const (
	there    change = iota // it came or changed
	deleting               // it is being deleted
	went                   // it is gone
)

var _ cache.TransformingStore = (*feed)(nil)

// Transformer drops what the graph does not use while a list is still being received.
func (f *feed) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) {
		if m, ok := obj.(*metav1.PartialObjectMetadata); ok {
			m.Labels, m.Annotations, m.ManagedFields = nil, nil, nil
		}
		return obj, nil
	}
}

// Add takes in an object that the watch showed.
func (f *feed) Add(obj any) error { return f.Update(obj) }

// Update takes in an object that the watch showed.
func (f *feed) Update(obj any) error {
	m, ok := obj.(*metav1.PartialObjectMetadata)
	if !ok {
		return fmt.Errorf("watch of %s: unexpected %T", f.kind, obj)
	}
	f.store.apply(graph.Observed{Object: toObject(f.kind, m)})
	f.tell(m)
	return nil
}

// Delete takes in a deletion that the watch showed.
func (f *feed) Delete(obj any) error {
	m, ok := obj.(*metav1.PartialObjectMetadata)
	if !ok {
		return fmt.Errorf("watch of %s: unexpected %T", f.kind, obj)
	}
	f.store.apply(graph.Gone{Kind: f.kind, UID: m.UID})
	if f.seen != nil {
		f.seen(m.Name, went)
	}
	return nil
}

// Replace takes in a complete list, in pieces, so that the others get at the graph in between.
func (f *feed) Replace(list []any, _ string) error {
	const piece = 256
	events := make([]graph.Event, 0, piece)
	events = append(events, graph.ListBegins{Kind: f.kind})
	var told []*metav1.PartialObjectMetadata // those to tell of, once the graph has them
	for i, obj := range list {
		m, ok := obj.(*metav1.PartialObjectMetadata)
		if !ok {
			return fmt.Errorf("list of %s: unexpected %T", f.kind, obj)
		}
		list[i] = nil // let go of it as soon as the graph has it
		events = append(events, graph.Observed{Object: toObject(f.kind, m)})
		if f.seen != nil || m.DeletionTimestamp != nil {
			told = append(told, m)
		}
		if len(events) == piece {
			f.store.apply(events...)
			events = events[:0]
		}
	}
	f.store.apply(append(events, graph.ListEnds{Kind: f.kind})...)
	for _, m := range told {
		f.tell(m)
	}
	return nil
}

// Resync does nothing: the graph is level with the watch, and nothing is delivered twice.
func (f *feed) Resync() error { return nil }

func (f *feed) tell(m *metav1.PartialObjectMetadata) {
	if f.terminating != nil && m.DeletionTimestamp != nil {
		f.terminating(m)
	}
	switch {
	case f.seen == nil:
	case m.DeletionTimestamp != nil:
		f.seen(m.Name, deleting)
	default:
		f.seen(m.Name, there)
	}
}

// follow lists and watches one kind until ctx ends. Errors are the graph's to know until the first list
// is complete; after that the reflector catches up by itself.
func (f *feed) follow(ctx context.Context, client metadata.Interface, gvr schema.GroupVersionResource, log logr.Logger) {
	resource := client.Resource(gvr)
	var last atomic.Pointer[error] // what the reflector was told, and may keep to itself
	lw := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list, err := resource.List(ctx, o)
			last.Store(&err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			w, err := resource.Watch(ctx, o)
			last.Store(&err)
			return w, err
		},
	}, client)
	// A reflector that is sent away with 429, or never answered, tries on without returning. Others must
	// not wait for it.
	late := time.AfterFunc(firstListsTimeout, func() {
		reason := fmt.Sprintf("no list within %s", firstListsTimeout)
		if err := last.Load(); err != nil && *err != nil {
			reason += ": " + (*err).Error()
		}
		f.store.apply(graph.ListFailed{Kind: f.kind, Reason: reason})
	})
	defer late.Stop()
	expected := &metav1.PartialObjectMetadata{}
	reflector := cache.NewReflectorWithOptions(lw, expected, f, cache.ReflectorOptions{
		Name: gvr.GroupResource().String(), TypeDescription: gvr.String(),
	})
	const first, most = 500 * time.Millisecond, 30 * time.Second
	for pause := first; ; pause = min(2*pause, most) {
		began := time.Now()
		err := reflector.ListAndWatchWithContext(ctx)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > most {
			pause = first
		}
		if err != nil {
			log.V(1).Info("watch ended", "kind", gvr.String(), "err", err.Error())
			f.store.apply(graph.ListFailed{Kind: f.kind, Forbidden: apierrors.IsForbidden(err), Reason: err.Error()})
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}
