package chaos

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
)

// A ledger knows what must become of every object, and follows what does.
type ledger struct {
	client metadata.Interface
	all    map[types.UID]*object

	mu      sync.Mutex
	pending map[types.UID]bool
	wrong   map[string]bool // what must not have happened, once each
	changed chan struct{}   // closed and replaced at every change
}

func newLedger(client metadata.Interface, c *cascade) *ledger {
	l := &ledger{
		client: client, all: map[types.UID]*object{}, pending: map[types.UID]bool{},
		wrong: map[string]bool{}, changed: make(chan struct{}),
	}
	for _, o := range c.objects {
		l.all[o.uid] = o
		l.pending[o.uid] = o.goes || len(o.kept) != len(o.owners)
		if !l.pending[o.uid] {
			delete(l.pending, o.uid)
		}
	}
	return l
}

// whyNot says what keeps an object that is there from being as it must end; empty means nothing.
func (o *object) whyNot(m *metav1.PartialObjectMetadata) string {
	var have, want []types.UID
	for _, r := range m.OwnerReferences {
		have = append(have, r.UID)
	}
	for _, owner := range o.kept {
		want = append(want, owner.uid)
	}
	switch {
	case o.goes:
		return "is still there"
	case m.DeletionTimestamp != nil:
		return "is being deleted"
	case len(m.Finalizers) > 0:
		return fmt.Sprintf("has finalizers %v", m.Finalizers)
	case !slices.Equal(slices.Sorted(slices.Values(have)), slices.Sorted(slices.Values(want))):
		return fmt.Sprintf("has %d owners, and not the %d that it should", len(have), len(want))
	}
	return ""
}

// see takes note of an object as it is.
func (l *ledger) see(m *metav1.PartialObjectMetadata) {
	o, ok := l.all[m.UID]
	if !ok {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !o.goes && m.DeletionTimestamp != nil {
		l.wrong[o.String()+" was deleted"] = true
	}
	if o.whyNot(m) == "" {
		l.done(o)
	}
}

// gone takes note of an object that is not there any more.
func (l *ledger) gone(o *object) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !o.goes {
		l.wrong[o.String()+" was deleted"] = true
	}
	l.done(o)
}

func (l *ledger) done(o *object) {
	if !l.pending[o.uid] {
		return
	}
	delete(l.pending, o.uid)
	close(l.changed)
	l.changed = make(chan struct{})
}

func (l *ledger) left() (n int, changed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.pending), l.changed
}

// patience is how long nothing may happen.
const patience = 3 * time.Minute

// await returns when at most n objects are left to be done.
func (l *ledger) await(ctx context.Context, n int) error {
	stall := time.NewTimer(patience)
	defer stall.Stop()
	for {
		left, changed := l.left()
		if left <= n {
			return nil
		}
		select {
		case <-changed:
			stall.Reset(patience)
		case <-stall.C:
			return fmt.Errorf("wait for %d objects: nothing happened for %s; among them %s", left, patience, l.some())
		case <-ctx.Done():
			return fmt.Errorf("wait for %d objects: %w", left, context.Cause(ctx))
		}
	}
}

func (l *ledger) some() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	for uid := range l.pending {
		return l.all[uid].String()
	}
	return "none"
}

// follow watches one kind until ctx ends, whatever becomes of the API server.
func (l *ledger) follow(ctx context.Context, kind string) {
	again := func(ctx context.Context) (bool, error) {
		list, err := l.list(ctx, kind)
		if err != nil {
			return false, nil //nolint:nilerr // it is down, and will be asked again
		}
		w, err := l.client.Resource(kinds[kind]).Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
		if err != nil {
			return false, nil //nolint:nilerr // the same
		}
		defer w.Stop()
		for e := range w.ResultChan() {
			m, ok := e.Object.(*metav1.PartialObjectMetadata)
			switch {
			case !ok: // an error: from a list on again
				return false, nil
			case e.Type == watch.Deleted && l.all[m.UID] != nil:
				l.gone(l.all[m.UID])
			case e.Type != watch.Deleted:
				l.see(m)
			}
		}
		return false, nil
	}
	_ = wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, again) // ends with ctx
}

// list takes note of everything of a kind, and of what is not there any more.
func (l *ledger) list(ctx context.Context, kind string) (*metav1.PartialObjectMetadataList, error) {
	list, err := l.client.Resource(kinds[kind]).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", kind, err)
	}
	there := map[types.UID]bool{}
	for i := range list.Items {
		there[list.Items[i].UID] = true
		l.see(&list.Items[i])
	}
	for uid, o := range l.all {
		if o.kind == kind && !there[uid] {
			l.gone(o)
		}
	}
	return list, nil
}

// verdict reads everything from the API server, and says all that is wrong, sorted.
func (l *ledger) verdict(ctx context.Context) ([]string, error) {
	l.mu.Lock()
	wrong := maps.Clone(l.wrong)
	l.mu.Unlock()
	for kind := range kinds {
		list, err := l.client.Resource(kinds[kind]).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", kind, err)
		}
		there := map[types.UID]bool{}
		for i := range list.Items {
			m := &list.Items[i]
			there[m.UID] = true
			if o := l.all[m.UID]; o != nil && o.whyNot(m) != "" {
				wrong[o.String()+" "+o.whyNot(m)] = true
			}
		}
		for uid, o := range l.all {
			if o.kind == kind && !o.goes && !there[uid] {
				wrong[o.String()+" was deleted"] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(wrong)), nil
}
