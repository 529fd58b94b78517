package snapshot

import (
	"context"
	"errors"
	"io"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
)

// followed is a kind that is listed and watched, the store that its reflector writes to.
type followed struct {
	follower *Follower
	kind     graph.Resource
	stop     context.CancelFunc

	objects map[string]map[types.UID]*metav1.PartialObjectMetadata // by namespace
	version string                                                 // the last resourceVersion from the API server
	synced  bool
	problem string // why it is not followed now; empty: it is
	denied  bool
}

// answered records whether the kind can be followed, from the result of a request.
func (k *followed) answered(err error) {
	problem, denied := "", false
	switch {
	case err == nil || errors.Is(err, context.Canceled) || errors.Is(err, io.EOF):
	case apierrors.IsResourceExpired(err) || apierrors.IsGone(err): // the reflector lists it again
	default:
		problem, denied = ReasonOf(err), apierrors.IsForbidden(err)
	}
	k.follower.mu.Lock()
	defer k.follower.mu.Unlock()
	if k.problem != problem {
		k.problem, k.denied = problem, denied
		k.follower.renew()
	}
}

// Replace sets all objects, from a list.
func (k *followed) Replace(list []any, version string) error {
	objects := map[string]map[types.UID]*metav1.PartialObjectMetadata{}
	for _, o := range list {
		put(objects, o)
	}
	k.follower.mu.Lock()
	defer k.follower.mu.Unlock()
	k.objects, k.version, k.synced = objects, version, true
	k.follower.renew()
	return nil
}

func put(
	objects map[string]map[types.UID]*metav1.PartialObjectMetadata, o any,
) (before, now *metav1.PartialObjectMetadata) {
	m, ok := o.(*metav1.PartialObjectMetadata)
	if !ok {
		return nil, nil
	}
	if len(m.Finalizers) == 0 {
		m.ManagedFields = nil // they only serve to tell who wrote a finalizer
	}
	in := objects[m.Namespace]
	if in == nil {
		in = map[types.UID]*metav1.PartialObjectMetadata{}
		objects[m.Namespace] = in
	}
	before = in[m.UID]
	in[m.UID] = m
	return before, m
}

// Add adds an object.
func (k *followed) Add(o any) error { return k.Update(o) }

// Update sets an object. It counts as a change only if an answer may depend on it.
func (k *followed) Update(o any) error {
	k.follower.mu.Lock()
	defer k.follower.mu.Unlock()
	if before, now := put(k.objects, o); now != nil && (before == nil || !alike(before, now)) {
		k.note(now, false)
	}
	return nil
}

// Delete removes an object.
func (k *followed) Delete(o any) error {
	m, ok := o.(*metav1.PartialObjectMetadata)
	if !ok {
		return nil
	}
	k.follower.mu.Lock()
	defer k.follower.mu.Unlock()
	in := k.objects[m.Namespace]
	delete(in, m.UID)
	if len(in) == 0 {
		delete(k.objects, m.Namespace)
	}
	k.note(m, true)
	return nil
}

// Resync does nothing.
func (*followed) Resync() error { return nil }

// UpdateResourceVersion records how far the watch is; bookmarks tell that, too.
func (k *followed) UpdateResourceVersion(version string) {
	k.follower.mu.Lock()
	defer k.follower.mu.Unlock()
	k.version = version
}

// note records that an object has changed. The caller holds mu.
func (k *followed) note(m *metav1.PartialObjectMetadata, gone bool) {
	f, gr := k.follower, k.kind.GroupResource()
	if f.kinds[gr] != k {
		return // a last event of a stopped reflector
	}
	f.note(m.Namespace)
	switch {
	case f.world == nil || !f.world.HasRead(gr): // renew tells when it can be read
	case gone:
		f.world.Unlist(gr, m.UID)
	default:
		f.world.Observe(gr, m)
	}
}

// alike reports whether a and b differ in nothing that an answer depends on. Most updates are such
// ones: Leases are renewed all the time.
func alike(a, b *metav1.PartialObjectMetadata) bool {
	x, y := a.ObjectMeta, b.ObjectMeta
	for _, m := range []*metav1.ObjectMeta{&x, &y} {
		m.ResourceVersion, m.ManagedFields = "", nil
	}
	return reflect.DeepEqual(x, y)
}
