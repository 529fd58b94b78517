package undo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"

	"github.com/weir-dev/weir/archive"
	"github.com/weir-dev/weir/controller/await"
	"github.com/weir-dev/weir/controller/events"
	"github.com/weir-dev/weir/controller/follow"
	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/kinds"
	"github.com/weir-dev/weir/controller/request"
	"github.com/weir-dev/weir/policies"
	"github.com/weir-dev/weir/policies/v1beta1"
)

const (
	// recordsAtOnce is how many trees are recorded at the same time. Each takes a few megabytes of
	// memory.
	recordsAtOnce = 2
	// catalogueEvery is how often the catalogue is read again, and expired trees are purged.
	catalogueEvery = time.Minute
	// mostRecordedWith is how many objects are remembered as recorded with a root. Beyond it all are
	// forgotten, and recorded once more.
	mostRecordedWith = 200_000
)

// Options are the options of New.
type Options struct {
	Store     *follow.Store
	Requester *request.Client
	Reporter  *events.Reporter
	Archive   *archive.Store
	Volumes   typedcorev1.PersistentVolumeInterface
	Most      int64 // bytes of all trees together
	Registry  prometheus.Registerer
	Log       logr.Logger
}

// Unrecorded is an object that is being deleted, and has to be recorded before it goes.
type Unrecorded struct {
	Root    graph.View
	Deleted metav1.Time
	Archive policies.Archiving
	Keeps   func(schema.GroupResource) bool // reports whether dependents of a kind stay; nil: none does
	Again   func()                          // called when Recorded may have another answer
}

// Recorder records the trees of roots that are held.
type Recorder struct {
	Options
	metrics *metrics
	queue   workqueue.TypedInterface[types.UID]
	more    chan struct{} // a tree was recorded, and may be shipped

	mu           sync.Mutex
	roots        map[types.UID]*root
	recordedWith map[types.UID]types.UID // the root with which each object was recorded, by uid
	trees        []entry
	read         bool // the catalogue has been read
	gone         bool // trees may be gone for which volumes were retained
}

// root is an object that is held until its tree is durable.
type root struct {
	Unrecorded
	done bool
	err  error // why the last attempt failed
}

// New prepares a Recorder. Nothing is sent before Run.
func New(o Options) *Recorder {
	r := &Recorder{Options: o, metrics: newMetrics(o.Registry), gone: true,
		roots: map[types.UID]*root{}, recordedWith: map[types.UID]types.UID{},
		more:  make(chan struct{}, 1),
		queue: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[types.UID]{Name: "archive"})}
	o.Archive.Room = r.room
	return r
}

// Recorded returns why a root has to wait because its tree is not durable yet. why is empty if the
// tree is durable, or if the root goes without one. failed is true if the last attempt failed.
func (r *Recorder) Recorded(u Unrecorded) (why string, failed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.roots[u.Root.UID]
	switch {
	case known == nil && r.recordedWithLocked(u.Root):
		return "", false
	case known == nil:
		r.roots[u.Root.UID] = &root{Unrecorded: u}
		r.queue.Add(u.Root.UID)
		return "the deletion is held until everything that would be deleted is recorded", false
	case known.done:
		return "", false
	case known.err == nil:
		return "the deletion is held until everything that would be deleted is recorded", false
	case !u.Archive.Fail:
		known.done = true
		r.metrics.recorded.WithLabelValues("unrecorded").Inc()
		r.Reporter.Warn(u.Root.Ref, events.ReasonNotRecorded, fmt.Sprintf(
			"deleted, and not recorded: %v. DeletionPolicy %q has failurePolicy Ignore", known.err, u.Archive.By))
		return "", false
	}
	why = fmt.Sprintf("the deletion is held: what would be deleted cannot be recorded, and DeletionPolicy %q has "+
		"failurePolicy Fail: %v. Weir tries again. To delete without a record, set failurePolicy to Ignore",
		u.Archive.By, known.err)
	known.Unrecorded = u
	r.queue.Add(u.Root.UID)
	return why, true
}

// recordedWithLocked reports whether an object was recorded with the owner, or the namespace,
// because of which it is deleted now.
func (r *Recorder) recordedWithLocked(v graph.View) bool {
	of, recorded := r.recordedWith[v.UID]
	if !recorded {
		return false
	}
	if known := r.roots[of]; known != nil && known.Root.Kind == kinds.Namespaces {
		return true
	}
	for _, o := range v.Owners {
		if o.Verdict == "absent" || o.Verdict == "waiting" {
			return true
		}
	}
	return false
}

// Ended is called with an object that is not held any more.
func (r *Recorder) Ended(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.roots, uid)
}

// Run records until ctx ends.
func (r *Recorder) Run(ctx context.Context) {
	var wg sync.WaitGroup
	wg.Go(func() { r.shipping(ctx) })
	await.Work(&wg, recordsAtOnce, r.queue, func(uid types.UID) { r.work(ctx, uid) })
	for ctx.Err() == nil {
		if err := r.tidy(ctx, time.Now()); err != nil && ctx.Err() == nil {
			r.Log.Info("cannot read the catalogue of deleted trees, will try again", "err", err.Error())
		}
		_ = await.Pause(ctx, catalogueEvery)
	}
	r.queue.ShutDown()
	wg.Wait()
}

func (r *Recorder) work(ctx context.Context, uid types.UID) {
	r.mu.Lock()
	known := r.roots[uid]
	var u Unrecorded
	if known != nil {
		u = known.Unrecorded
	}
	r.mu.Unlock()
	if known == nil || ctx.Err() != nil {
		return
	}
	err := r.record(ctx, u)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		r.metrics.recorded.WithLabelValues("failed").Inc()
		r.Log.Info("cannot record what is deleted with an object",
			"object", u.Root.String(), "uid", uid, "err", err.Error())
	}
	r.mu.Lock()
	known.done, known.err = err == nil, err
	r.mu.Unlock()
	if err == nil || !u.Archive.Fail {
		u.Again()
	}
}

// errUnread: nothing is recorded before the size of the archive is known.
var errUnread = errors.New("the catalogue of deleted trees has not been read yet")

// record writes the tree of a root, unless an earlier leader has.
func (r *Recorder) record(ctx context.Context, u Unrecorded) error {
	r.mu.Lock()
	read := r.read
	r.mu.Unlock()
	if !read {
		if err := r.tidy(ctx, time.Now()); err != nil {
			return errors.Join(errUnread, err)
		}
	}
	if r.recordedBefore(ctx, u.Root.UID) {
		return nil
	}
	now := time.Now()
	gvk := r.Requester.KindOf(u.Root.Kind)
	tree := &v1beta1.DeletedTree{Spec: v1beta1.DeletedTreeSpec{
		Root: v1beta1.DeletedRoot{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, Resource: u.Root.Kind.Resource,
			Namespace: u.Root.Namespace, Name: u.Root.Name, UID: string(u.Root.UID)},
		DeletionTime: &u.Deleted, ExpirationTime: ptr.To(metav1.NewTime(now.Add(u.Archive.Retention))),
	}}
	reading := &reading{Recorder: r, Unrecorded: u, tree: tree, got: map[types.UID]uint64{}}
	err := r.Archive.Write(ctx, tree, r.retaining(ctx, u, tree, reading.objects(ctx)))
	select {
	case r.more <- struct{}{}:
	default:
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.gone = true
		r.dropLocked(tree.Name)
		if tree.Name != "" { // each attempt has another tree name, and users are told once
			err = errors.New(strings.ReplaceAll(err.Error(), tree.Name, "TREE"))
		}
		return err
	}
	r.setLocked(entryOf(tree))
	r.rememberLocked(u.Root.UID, maps.Keys(reading.got))
	r.metrics.recorded.WithLabelValues("recorded").Inc()
	r.Log.Info("recorded what is deleted with an object", "object", u.Root.String(), "uid", u.Root.UID,
		"tree", tree.Name, "objects", tree.Status.Objects, "bytes", tree.Status.Bytes, "missed", tree.Status.MissedObjects)
	return nil
}

// recordedBefore reports whether an earlier leader has recorded a root. It believes only what is
// sealed in a tree: users who may write DeletedTrees may write anything into their status.
func (r *Recorder) recordedBefore(ctx context.Context, root types.UID) bool {
	r.mu.Lock()
	trees := slices.Clone(r.trees)
	r.mu.Unlock()
	for _, e := range trees {
		if !e.durable || e.root != string(root) {
			continue
		}
		uids, err := r.sealedIn(ctx, e.name)
		if err == nil && slices.Contains(uids, root) {
			r.mu.Lock()
			r.rememberLocked(root, slices.Values(uids))
			r.mu.Unlock()
			return true
		}
		r.Log.Info("a deleted tree does not have the object that it names, which is recorded again",
			"tree", e.name, "uid", root, "err", err)
	}
	return false
}

// readWithin bounds the read of a tree of an earlier leader. It may be in a bucket that hangs.
// After this time its root is recorded again.
const readWithin = 30 * time.Second

// sealedIn returns the uids of the objects in a tree.
func (r *Recorder) sealedIn(ctx context.Context, tree string) (all []types.UID, err error) {
	ctx, cancel := context.WithTimeout(ctx, readWithin)
	defer cancel()
	for o, err := range r.Archive.Read(ctx, tree) {
		var m metav1.PartialObjectMetadata
		if err == nil {
			err = json.Unmarshal(o.Raw, &m)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, m.UID)
	}
	return all, nil
}

// rememberLocked remembers the objects that were recorded with a root.
func (r *Recorder) rememberLocked(root types.UID, all iter.Seq[types.UID]) {
	if len(r.recordedWith) > mostRecordedWith {
		clear(r.recordedWith)
	}
	for uid := range all {
		r.recordedWith[uid] = root
	}
}
