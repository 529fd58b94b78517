package namespaces

import (
	"context"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// mostShared is how many objects a kind may have in the whole cluster for one list of it to be shared by several namespaces.
	mostShared = 500
	// gatherEach is how long a list waits for each other namespace that is being drained, which may want it, too, and mostGather how long at
	// most. Namespaces that are drained side by side come to their ends one after the other.
	gatherEach = 10 * time.Millisecond
	mostGather = 500 * time.Millisecond
)

// sharedLists lists kinds of which there is little for several namespaces at once: what proves one namespace empty proves all those empty that
// asked for it before it began. Nothing is remembered of a list when it has ended.
type sharedLists struct {
	list func(ctx context.Context, kind schema.GroupResource, namespace string) ([]metav1.PartialObjectMetadata, error)
	// others is how many other namespaces are likely to want a list soon.
	others func() int

	mu   sync.Mutex
	next map[schema.GroupResource]*sharedList // those that have not begun
}

// sharedList is one list, and who wants it.
type sharedList struct {
	namespaces []string
	ended      chan struct{}
	// items and err are there when it has ended.
	items map[string][]metav1.PartialObjectMetadata
	err   error
}

// of lists what a namespace holds of a kind, live: by a list that begins after the call.
func (s *sharedLists) of(ctx context.Context, kind schema.GroupResource, namespace string) ([]metav1.PartialObjectMetadata, error) {
	s.mu.Lock()
	l := s.next[kind]
	first := l == nil
	if first {
		l = &sharedList{ended: make(chan struct{})}
		s.next[kind] = l
	}
	l.namespaces = append(l.namespaces, namespace)
	s.mu.Unlock()
	if first {
		s.run(ctx, kind, l)
	}
	select {
	case <-l.ended:
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if l.err != nil && len(l.namespaces) > 1 { // whoever made the list may have been told to end, or may not list all namespaces
		return s.list(ctx, kind, namespace)
	}
	return l.items[namespace], l.err
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
	namespaces := slices.Compact(slices.Sorted(slices.Values(l.namespaces)))
	s.mu.Unlock()
	of := ""
	if len(namespaces) == 1 {
		of = namespaces[0]
	}
	items, err := s.list(ctx, kind, of)
	l.err, l.items = err, map[string][]metav1.PartialObjectMetadata{}
	for _, m := range items {
		if slices.Contains(namespaces, m.Namespace) {
			l.items[m.Namespace] = append(l.items[m.Namespace], m)
		}
	}
}
