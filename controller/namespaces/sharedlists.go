package namespaces

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// mostShared is how many objects a kind may have in the whole cluster for one list of it to be
	// shared by several namespaces.
	mostShared = 500
	// gatherEach is how long a list waits for each other namespace that is being drained, which may
	// want it, too, and mostGather how long at most. Namespaces that are drained side by side come
	// to their ends one after the other.
	gatherEach = 10 * time.Millisecond
	mostGather = 500 * time.Millisecond
)

// sharedLists lists kinds of which there is little for several namespaces at once: what proves one
// namespace empty proves all those empty that asked for it before it began. Nothing is remembered
// of a list when it has ended.
type sharedLists struct {
	list func(ctx context.Context, kind schema.GroupResource, namespace string, each func(*metav1.PartialObjectMetadata)) error
	// others is how many other namespaces are likely to want a list soon.
	others func() int

	mu   sync.Mutex
	next map[schema.GroupResource]*sharedList // those that have not begun
}

// sharedList is one list, and who wants it.
type sharedList struct {
	wishes []*wish
	ended  chan struct{}
	err    error // is there when it has ended
}

// wish is what a list is wanted for: of what it shows, only that is kept, and only as much of each
// object.
type wish struct {
	namespace string
	keep      func(*metav1.PartialObjectMetadata) found
	items     []found // are there when the list has ended
}

// alone lists what a namespace holds of a kind, live, for it alone.
func (s *sharedLists) alone(ctx context.Context, kind schema.GroupResource, namespace string, keep func(*metav1.PartialObjectMetadata) found) ([]found, error) {
	var items []found
	if err := s.list(ctx, kind, namespace, func(m *metav1.PartialObjectMetadata) { items = append(items, keep(m)) }); err != nil {
		return nil, err
	}
	return items, nil
}

// of lists what a namespace holds of a kind, live: by a list that begins after the call.
func (s *sharedLists) of(ctx context.Context, kind schema.GroupResource, namespace string, keep func(*metav1.PartialObjectMetadata) found) ([]found, error) {
	w := &wish{namespace: namespace, keep: keep}
	s.mu.Lock()
	l := s.next[kind]
	first := l == nil
	if first {
		l = &sharedList{ended: make(chan struct{})}
		s.next[kind] = l
	}
	l.wishes = append(l.wishes, w)
	s.mu.Unlock()
	if first {
		s.run(ctx, kind, l)
	}
	select {
	case <-l.ended:
	case <-ctx.Done():
	}
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case l.err != nil && len(l.wishes) > 1: // whoever made the list may have been told to end, or may not list all namespaces
		return s.alone(ctx, kind, namespace, keep)
	case l.err != nil:
		return nil, l.err
	}
	return w.items, nil
}

// run gathers who wants a list, and makes it.
func (s *sharedLists) run(ctx context.Context, kind schema.GroupResource, l *sharedList) {
	defer close(l.ended)
	if n := s.others(); n > 0 {
		select {
		case <-time.After(min(time.Duration(n)*gatherEach, mostGather)):
		case <-ctx.Done():
		}
	}
	s.mu.Lock()
	delete(s.next, kind) // who comes from here on wants a later one
	wishes := map[string][]*wish{}
	for _, w := range l.wishes {
		wishes[w.namespace] = append(wishes[w.namespace], w)
	}
	s.mu.Unlock()
	of := ""
	if len(wishes) == 1 {
		of = l.wishes[0].namespace
	}
	l.err = s.list(ctx, kind, of, func(m *metav1.PartialObjectMetadata) {
		for _, w := range wishes[m.Namespace] {
			w.items = append(w.items, w.keep(m))
		}
	})
}
