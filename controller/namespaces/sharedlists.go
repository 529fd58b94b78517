package namespaces

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// mostShared is how many objects a kind may have in the whole cluster for its lists to be shared
	// by several namespaces.
	mostShared = 500
	// gatherEach is how long a list waits for each other namespace that is being drained and may want
	// it, too; mostGather is how long at most. Namespaces that are drained at the same time come to
	// their ends one after the other.
	gatherEach = 10 * time.Millisecond
	mostGather = 500 * time.Millisecond
)

// sharedLists lists kinds that have few objects for several namespaces at once. One list proves all
// those namespaces empty that asked before it began. No result is kept after that.
type sharedLists struct {
	list func(ctx context.Context, kind schema.GroupResource, namespace string,
		each func(*metav1.PartialObjectMetadata)) error
	// others returns how many other namespaces are likely to want a list soon.
	others func() int

	lock sync.Locker                          // guards next
	next map[schema.GroupResource]*sharedList // lists that have not begun
}

// sharedList is one list, and who wants it.
type sharedList struct {
	wishes []*wish
	ended  chan struct{}
	err    error // set before ended is closed
}

// keep returns what is kept of an object of a list.
type keep func(*metav1.PartialObjectMetadata) found

// wish is one namespace's part of a list.
type wish struct {
	namespace string
	keep      keep
	items     []found // set before ended is closed
}

// alone lists live the objects of a kind in a namespace, for that namespace only.
func (s *sharedLists) alone(
	ctx context.Context, kind schema.GroupResource, namespace string, keep keep,
) (items []found, err error) {
	err = s.list(ctx, kind, namespace, func(m *metav1.PartialObjectMetadata) { items = append(items, keep(m)) })
	if err != nil {
		return nil, err
	}
	return items, nil
}

// of lists live the objects of a kind in a namespace, by a list that begins after the call.
func (s *sharedLists) of(
	ctx context.Context, kind schema.GroupResource, namespace string, keep keep,
) ([]found, error) {
	w := &wish{namespace: namespace, keep: keep}
	s.lock.Lock()
	l := s.next[kind]
	first := l == nil
	if first {
		l = &sharedList{ended: make(chan struct{})}
		s.next[kind] = l
	}
	l.wishes = append(l.wishes, w)
	s.lock.Unlock()
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
	case l.err != nil && len(l.wishes) > 1: // the one that listed may have been cancelled, or may not list all namespaces
		return s.alone(ctx, kind, namespace, keep)
	case l.err != nil:
		return nil, l.err
	}
	return w.items, nil
}

// run waits for others that want the list, and makes it.
func (s *sharedLists) run(ctx context.Context, kind schema.GroupResource, l *sharedList) {
	defer close(l.ended)
	if n := s.others(); n > 0 {
		select {
		case <-time.After(min(time.Duration(n)*gatherEach, mostGather)):
		case <-ctx.Done():
		}
	}
	s.lock.Lock()
	delete(s.next, kind) // later wishes go to the next list
	wishes := map[string][]*wish{}
	for _, w := range l.wishes {
		wishes[w.namespace] = append(wishes[w.namespace], w)
	}
	s.lock.Unlock()
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
