package live

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/weir-dev/weir/controller/await"
)

// objects are the objects of one cluster-scoped kind, by name: the store of a reflector.
type objects struct {
	// seen is called when an object comes or goes, or its spec changes, and, with first, when all are
	// listed for the first time, or again after a rewind.
	seen func(first bool)

	mu     sync.RWMutex
	byName map[string]map[string]any
	listed bool
	void   bool               // what is listed is from before a rewind
	end    context.CancelFunc // ends the current list and watch
	last   func() string      // returns the last resourceVersion of the reflector
}

// respecified reports whether an object comes or goes, or its spec changes: its status does not
// matter.
func respecified(was, is map[string]any) bool {
	return (was == nil) != (is == nil) || !equality.Semantic.DeepEqual(was["spec"], is["spec"])
}

func newObjects(seen func(first bool)) *objects {
	return &objects{seen: seen, byName: map[string]map[string]any{}}
}

var _ cache.ReflectorStore = (*objects)(nil)

// Add implements cache.ReflectorStore.
func (s *objects) Add(obj any) error { return s.Update(obj) }

// Update implements cache.ReflectorStore.
func (s *objects) Update(obj any) error {
	name, o, err := read(obj)
	if err != nil {
		return err
	}
	s.set(name, o)
	return nil
}

// Delete implements cache.ReflectorStore.
func (s *objects) Delete(obj any) error {
	name, _, err := read(obj)
	if err != nil {
		return err
	}
	s.set(name, nil)
	return nil
}

// set stores an object, or with nil removes it.
func (s *objects) set(name string, o map[string]any) {
	s.mu.Lock()
	was := s.byName[name]
	if s.byName[name] = o; o == nil {
		delete(s.byName, name)
	}
	s.mu.Unlock()
	if respecified(was, o) {
		s.seen(false)
	}
}

// Replace implements cache.ReflectorStore.
func (s *objects) Replace(list []any, _ string) error {
	fresh := make(map[string]map[string]any, len(list))
	for _, obj := range list {
		name, o, err := read(obj)
		if err != nil {
			return err
		}
		fresh[name] = o
	}
	s.replace(fresh)
	return nil
}

func (s *objects) replace(fresh map[string]map[string]any) {
	s.mu.Lock()
	old, first := s.byName, !s.listed
	s.byName, s.listed = fresh, true
	s.mu.Unlock()
	if first || !maps.EqualFunc(old, fresh, func(was, is map[string]any) bool { return !respecified(was, is) }) {
		s.seen(first)
	}
}

// Resync implements cache.ReflectorStore.
func (s *objects) Resync() error { return nil }

func read(obj any) (string, map[string]any, error) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return "", nil, fmt.Errorf("unexpected %T", obj)
	}
	return u.GetName(), u.Object, nil
}

func (s *objects) ready() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.listed && !s.void
}

// rewind has everything listed again. What was listed stays until then.
func (s *objects) rewind() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.void = true
	if s.end != nil {
		s.end()
	}
}

// begins stores what ends the next list and watch, and reports whether everything seen before is
// void.
func (s *objects) begins(end context.CancelFunc) (void bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	void, s.end = s.void, end
	s.void, s.listed = false, s.listed && !void
	return void
}

// reached returns the resourceVersion of the watch; empty while there is none.
func (s *objects) reached() string {
	s.mu.RLock()
	last := s.last
	s.mu.RUnlock()
	if last == nil || !s.ready() {
		return ""
	}
	return last()
}

func (s *objects) get(name string) map[string]any {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.byName[name]
}

func (s *objects) all() []map[string]any {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Collect(maps.Values(s.byName))
}

// Transformer implements cache.TransformingStore. It drops managed fields.
func (s *objects) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) {
		if u, ok := obj.(*unstructured.Unstructured); ok {
			u.SetManagedFields(nil)
		}
		return obj, nil
	}
}

// follow lists and watches until ctx ends. A kind that the API server does not know has no objects:
// the CRDs need not be installed where policies are files.
func (s *objects) follow(ctx context.Context, client dynamic.NamespaceableResourceInterface,
	gvr schema.GroupVersionResource, log logr.Logger) {
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return client.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return client.Watch(ctx, o)
		},
	}
	reflector := s.reflector(lw, client, gvr)
	const first, most = 250 * time.Millisecond, 5 * time.Second
	for pause := first; ; pause = min(2*pause, most) {
		within, end := context.WithCancel(ctx)
		if s.begins(end) {
			reflector = s.reflector(lw, client, gvr)
		}
		err := reflector.ListAndWatchWithContext(within)
		rewound := within.Err() != nil
		end()
		switch {
		case ctx.Err() != nil:
			return
		case rewound:
			pause = first
		case notServed(err):
			if !s.ready() {
				log.Info("the kind is not installed: only files can hold such policies",
					"kind", gvr.GroupResource().String())
			}
			s.replace(map[string]map[string]any{})
			pause = most
		case err != nil:
			log.Info("cannot follow, will try again", "kind", gvr.GroupResource().String(), "err", err.Error())
		default:
			pause = first
		}
		if await.Pause(ctx, pause) != nil {
			return
		}
	}
}

// reflector returns a reflector that begins with a list. One that has watched before would resume
// at its last resourceVersion. After a rewind that is still to come, and no change would be shown
// until then.
func (s *objects) reflector(lw *cache.ListWatch, client any, gvr schema.GroupVersionResource) *cache.Reflector {
	r := cache.NewReflectorWithOptions(
		cache.ToListWatcherWithWatchListSemantics(lw, client), &unstructured.Unstructured{}, s,
		cache.ReflectorOptions{Name: gvr.Resource, TypeDescription: gvr.String()})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = r.LastSyncResourceVersion
	return r
}

// notServed reports whether an error is the API server's answer that it does not know a kind.
func notServed(err error) bool { return apierrors.IsNotFound(err) }
