package live

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
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
	// seen is called for each change; the entry of an object that is not there is zero. It is called
	// with an empty name when all are listed for the first time, or again after a rewind.
	seen func(name string, was, is entry)

	mu     sync.RWMutex
	byName map[string]entry
	listed bool
	void   bool               // what is listed is from before a rewind
	end    context.CancelFunc // ends the current list and watch
	last   func() string      // returns the last resourceVersion of the reflector
}

type entry struct {
	object     map[string]any
	generation int64
	labels     map[string]string
}

func (e entry) there() bool { return e.object != nil }

// respecified reports whether the spec of an object changed. The generation is not enough: an
// object that was made again, or restored from a backup, may have another spec under the same one.
func (e entry) respecified(was entry) bool {
	return e.there() != was.there() || e.generation != was.generation ||
		!equality.Semantic.DeepEqual(e.object["spec"], was.object["spec"])
}

func (e entry) relabelled(was entry) bool {
	return e.there() != was.there() || !maps.Equal(e.labels, was.labels)
}

func newObjects(seen func(string, entry, entry)) *objects {
	return &objects{seen: seen, byName: map[string]entry{}}
}

var _ cache.ReflectorStore = (*objects)(nil)

// Add implements cache.ReflectorStore.
func (s *objects) Add(obj any) error { return s.Update(obj) }

// Update implements cache.ReflectorStore.
func (s *objects) Update(obj any) error {
	name, e, err := read(obj)
	if err != nil {
		return err
	}
	s.mu.Lock()
	was := s.byName[name]
	s.byName[name] = e
	s.mu.Unlock()
	s.seen(name, was, e)
	return nil
}

// Delete implements cache.ReflectorStore.
func (s *objects) Delete(obj any) error {
	name, e, err := read(obj)
	if err != nil {
		return err
	}
	s.mu.Lock()
	delete(s.byName, name)
	s.mu.Unlock()
	s.seen(name, e, entry{})
	return nil
}

// Replace implements cache.ReflectorStore.
func (s *objects) Replace(list []any, _ string) error {
	fresh := make(map[string]entry, len(list))
	for _, obj := range list {
		name, e, err := read(obj)
		if err != nil {
			return err
		}
		fresh[name] = e
	}
	s.replace(fresh)
	return nil
}

func (s *objects) replace(fresh map[string]entry) {
	s.mu.Lock()
	old, first := s.byName, !s.listed
	s.byName, s.listed = fresh, true
	s.mu.Unlock()
	for name, e := range fresh {
		s.seen(name, old[name], e)
	}
	for name, e := range old {
		if _, still := fresh[name]; !still {
			s.seen(name, e, entry{})
		}
	}
	if first {
		s.seen("", entry{}, entry{})
	}
}

// Resync implements cache.ReflectorStore.
func (s *objects) Resync() error { return nil }

func read(obj any) (string, entry, error) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return "", entry{}, fmt.Errorf("unexpected %T", obj)
	}
	return u.GetName(), entry{object: u.Object, generation: u.GetGeneration(), labels: u.GetLabels()}, nil
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
	return s.byName[name].object
}

func (s *objects) all() []map[string]any {
	s.mu.RLock()
	defer s.mu.RUnlock()
	out := make([]map[string]any, 0, len(s.byName))
	for _, e := range s.byName {
		out = append(out, e.object)
	}
	return out
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
func (s *objects) follow(
	ctx context.Context, client dynamic.NamespaceableResourceInterface, gvr schema.GroupVersionResource, log logr.Logger,
) {
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
			s.replace(map[string]entry{})
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
func notServed(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code == http.StatusNotFound
}
