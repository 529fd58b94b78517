package follow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/weir-dev/weir/controller/await"
	"github.com/weir-dev/weir/controller/graph"
)

const (
	// shownWithin is how long a watch cache has to reach a resourceVersion: an API server waits 3 s
	// for it.
	shownWithin = 4 * time.Second
	// arriving is how long an event may take from a watch cache to the graph.
	arriving = 50 * time.Millisecond
	// mostShowing is how many kinds are asked about at once: more than Kubernetes has of its own.
	// An API server lets each request wait for its caches, which advance every 100 ms.
	mostShowing = 64
)

// cachesFollow is the version since which a watch cache advances to what it is asked for, even if
// nothing of its kind is written.
var cachesFollow = version.MustParseGeneric("1.31.0")

// showing finds out whether the watches have shown what was written before an owner was deleted
// with orphan. A watch may show nothing for half a minute and not end: an API server that cannot
// decode an object keeps the watches of its kind open for so long. Neither the last event of a
// watch nor a read from the storage tells that, so the cache that feeds the watch is asked how far
// it has come. One round over all kinds serves all owners that wait.
type showing struct {
	wanted uint64        // the newest resourceVersion that a caller has asked about
	upTo   uint64        // every watch has shown what was written up to it, or counts as broken
	wake   chan struct{} // has an element when a caller has asked
}

// Shown reports whether all watches have shown what was written before an object got its
// resourceVersion, or count as broken, which the graph knows. If not, that is being found out, and
// the caller asks again soon.
func (w *Watcher) Shown(o graph.Ref) bool {
	s, to := &w.showing, graph.VersionNumber(o.ResourceVersion)
	w.mu.Lock()
	defer w.mu.Unlock()
	if to <= s.upTo {
		return true
	}
	s.wanted = max(s.wanted, to)
	await.Wake(s.wake)
	return false
}

// show asks about all kinds, whenever that is wanted, until ctx ends.
func (w *Watcher) show(ctx context.Context) {
	for s := &w.showing; ; {
		select {
		case <-ctx.Done():
			return
		case <-s.wake:
		}
		w.mu.Lock()
		to, known := s.wanted, s.wanted <= s.upTo
		w.mu.Unlock()
		if known {
			continue // it was asked once more while it was being found out
		}
		w.showAll(ctx, to)
		if await.Pause(ctx, arriving) != nil {
			return
		}
		w.mu.Lock()
		if to <= s.wanted { // else the history went back
			s.upTo = to
		}
		w.mu.Unlock()
	}
}

// showAll makes sure that each kind that is followed has reached a resourceVersion, or counts as
// behind. If most have not, the API server is late, or its caches do not advance, and no watch is
// to blame.
func (w *Watcher) showAll(ctx context.Context, to uint64) {
	info, err := w.discovery.ServerVersion()
	if err != nil {
		w.log.V(1).Info("cannot tell whether watches have shown everything", "err", err.Error())
		return
	}
	if v, err := version.ParseGeneric(info.GitVersion); err != nil || v.LessThan(cachesFollow) {
		return
	}
	var group errgroup.Group
	group.SetLimit(mostShowing)
	type question struct {
		*follower
		why string // the kind is late
	}
	var asked []*question
	for _, k := range w.store.Stats().Kinds {
		f := w.follower(k.GroupResource())
		if f == nil || k.State != graph.Synced || f.Reached.Load() >= to {
			continue
		}
		q := &question{follower: f}
		asked = append(asked, q)
		group.Go(func() error {
			q.why = f.unshown(ctx, k.Namespaced, to)
			return nil
		})
	}
	_ = group.Wait() // they have none
	all := len(asked)
	late := slices.DeleteFunc(asked, func(q *question) bool { return q.why == "" })
	if 2*len(late) > all {
		w.log.Info("the API server is late: watches may not have shown everything", "resourceVersion", to,
			"kinds", all, "late", len(late))
		return
	}
	for _, q := range late {
		q.again(q.why)
	}
}

// follower returns the follower of a kind, or nil.
func (w *Watcher) follower(kind schema.GroupResource) *follower {
	w.mu.Lock()
	defer w.mu.Unlock()
	if f := w.running[kind]; f != nil && !f.leaving {
		return f
	}
	return nil
}

// unshown returns why the watch cache of the kind has certainly not reached a resourceVersion; ""
// if that is not certain. A kind in a storage of its own may never reach it, and cannot be asked.
func (f *follower) unshown(ctx context.Context, namespaced bool, to uint64) string {
	namespace := ""
	if namespaced {
		namespace = metav1.NamespaceDefault
	}
	within, cancel := context.WithTimeout(ctx, shownWithin)
	defer cancel()
	err := f.resource.Reach(within, namespace, fmt.Sprint(to))
	if ctx.Err() != nil || !apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge) &&
		!errors.Is(err, context.DeadlineExceeded) {
		return ""
	}
	list, listErr := f.resource.Page(within, metav1.ListOptions{Limit: 1}, func(*metav1.PartialObjectMetadata) {})
	if listErr == nil && graph.VersionNumber(list.ResourceVersion) < to {
		return ""
	}
	return fmt.Sprintf("it does not show what was written until resourceVersion %d: %v", to, err)
}
