package undo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/archive"
	"github.com/weir-dev/weir/controller/events"
	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/kinds"
	"github.com/weir-dev/weir/policies/v1beta1"
)

var treeKind = v1beta1.GroupVersion.WithResource("deletedtrees").GroupResource()

// entry is what is known of a tree without reading it.
type entry struct {
	name, uid, root, namespace string
	made                       time.Time
	bytes                      int64
	durable                    bool
}

func entryOf(t *v1beta1.DeletedTree) entry {
	root := t.Spec.Root
	if (schema.GroupResource{Group: root.Group, Resource: root.Resource}) == kinds.Namespaces {
		root.Namespace = root.Name
	}
	e := entry{name: t.Name, uid: string(t.UID), root: root.UID, namespace: root.Namespace,
		made: t.CreationTimestamp.Time, bytes: t.Status.Bytes, durable: archive.Durable(t)}
	if t.Status.BucketPrefix != "" {
		e.bytes = 0 // it takes no room in the cluster
	}
	return e
}

// tidy reads the catalogue, and purges trees that have expired or that an earlier leader has not
// finished.
func (r *Recorder) tidy(ctx context.Context, now time.Time) error {
	all, err := r.Archive.List(ctx)
	if err != nil {
		return err
	}
	r.mu.Lock()
	before := r.trees
	r.trees, r.read = nil, true
	var purge []*v1beta1.DeletedTree
	for i := range all {
		t := &all[i]
		at := slices.IndexFunc(before, func(e entry) bool { return e.name == t.Name })
		switch {
		case at >= 0 && !before[at].durable:
			r.trees = append(r.trees, before[at]) // this process is writing it
		case !archive.Durable(t) && r.writesLocked(t): // this process has just begun it
		case !archive.Durable(t), t.Spec.ExpirationTime != nil && now.After(t.Spec.ExpirationTime.Time):
			purge = append(purge, t)
		default:
			r.trees = append(r.trees, entryOf(t))
		}
	}
	for _, e := range before {
		r.gone = r.gone || !slices.ContainsFunc(all, func(t v1beta1.DeletedTree) bool { return t.Name == e.name })
	}
	r.gone = r.gone || len(purge) > 0
	lost := r.gone
	r.gone = false
	r.countLocked()
	r.mu.Unlock()
	var errs []error
	for _, t := range purge {
		r.Log.Info("purging a deleted tree",
			"tree", t.Name, "durable", archive.Durable(t), "expires", t.Spec.ExpirationTime.String())
		errs = append(errs, r.Archive.Purge(ctx, t))
	}
	if lost {
		errs = append(errs, r.giveBack(ctx))
	}
	err = errors.Join(errs...)
	if lost && err != nil {
		r.mu.Lock()
		r.gone = true
		r.mu.Unlock()
	}
	return err
}

// writesLocked reports whether this process is to write the tree of t's root.
func (r *Recorder) writesLocked(t *v1beta1.DeletedTree) bool {
	known := r.roots[types.UID(t.Spec.Root.UID)]
	return known != nil && !known.done
}

// room makes room for more bytes of a tree that is being written.
func (r *Recorder) room(ctx context.Context, tree *v1beta1.DeletedTree, more int64) error {
	r.mu.Lock()
	now := entryOf(tree)
	now.bytes += more
	r.setLocked(now)
	purge, ok := evict(r.trees, now, r.Most, func(e entry) bool { return r.roots[types.UID(e.root)] == nil })
	r.mu.Unlock()
	if !ok {
		return fmt.Errorf("the archive is full: all trees together may have %d MiB, and namespace %q, within its share, "+
			"has no older tree to purge for this one. Purge some (kubectl get deletedtrees), or raise --archive-mib",
			r.Most>>20, now.namespace)
	}
	for _, e := range purge {
		why := fmt.Sprintf("purged before its time: the archive is full, and namespace %q has more than its share",
			e.namespace)
		r.Log.Info("purging a deleted tree", "tree", e.name, "why", why)
		t := &v1beta1.DeletedTree{}
		t.Name, t.UID = e.name, types.UID(e.uid)
		if err := r.Archive.Purge(ctx, t); err != nil {
			return err
		}
		on := graph.Ref{Kind: treeKind, Name: t.Name, UID: t.UID}
		r.Reporter.Warn(on, events.ReasonTreePurged, why)
		r.metrics.recorded.WithLabelValues("evicted").Inc()
		r.mu.Lock()
		r.gone = true
		r.dropLocked(e.name)
		r.mu.Unlock()
	}
	return nil
}

// evict chooses the trees to purge so that all have no more than most bytes. Each namespace has the
// same share. If the growing tree takes its namespace over the share, that namespace loses its
// oldest trees; else the namespace with most bytes does. ok is false if that is not enough.
func evict(trees []entry, grows entry, most int64, may func(entry) bool) (out []entry, ok bool) {
	used, total := map[string]int64{}, int64(0)
	for _, e := range trees {
		used[e.namespace] += e.bytes
		total += e.bytes
	}
	share := most / int64(max(1, len(used)))
	oldest := slices.SortedFunc(slices.Values(trees), func(a, b entry) int {
		return cmp.Or(a.made.Compare(b.made), cmp.Compare(a.name, b.name))
	})
	for total > most {
		from := grows.namespace
		if used[from] <= share {
			for namespace, bytes := range used {
				if bytes > used[from] || bytes == used[from] && namespace < from {
					from = namespace
				}
			}
		}
		at := slices.IndexFunc(oldest, func(e entry) bool {
			return e.namespace == from && e.name != grows.name && e.bytes > 0 && e.durable && may(e)
		})
		if at < 0 {
			return nil, false
		}
		e := oldest[at]
		oldest = slices.Delete(oldest, at, at+1)
		used[from] -= e.bytes
		total -= e.bytes
		out = append(out, e)
	}
	return out, true
}

func (r *Recorder) setLocked(e entry) {
	r.dropLocked(e.name)
	r.trees = append(r.trees, e)
	r.countLocked()
}

func (r *Recorder) dropLocked(name string) {
	r.trees = slices.DeleteFunc(r.trees, func(e entry) bool { return e.name == name })
	r.countLocked()
}

func (r *Recorder) countLocked() {
	total := int64(0)
	for _, e := range r.trees {
		total += e.bytes
	}
	r.metrics.bytes.Set(float64(total))
}
