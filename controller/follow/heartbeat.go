package follow

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
)

var leases = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}

// findEvery is how often a Lease is looked for where there is none.
const findEvery = time.Minute

// heartbeat reads the Lease that an API server renews every 10 s. A single object is read from the
// storage itself. Lists are not: an API server whose storage was restored under it goes on showing
// what it had cached, at the resourceVersions of before.
type heartbeat struct {
	leases  metadata.ResourceInterface
	name    string // "": none is known
	uid     types.UID
	version uint64 // as it was last seen
	lookAt  time.Time
	// stale: the API server may go on showing what it had cached, and be found out again and again.
	stale bool
}

func newHeartbeat(client metadata.Interface) *heartbeat {
	return &heartbeat{leases: client.Resource(leases).Namespace(metav1.NamespaceSystem)}
}

// contradicts says why the Lease cannot come after what was seen of it; "" if it can, or if there
// is none.
//
// A Lease that was renewed since the restore may have come further than it was last seen. But what
// the watch of Leases has not shown must have come after everything that it has shown.
func (b *heartbeat) contradicts(ctx context.Context, watch *Feed) (string, error) {
	if b.name == "" && !b.find(ctx) {
		return "", nil
	}
	reached, shown := b.shown(watch)
	lease, err := b.leases.Get(ctx, b.name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err): // it is not there any more, or may not be read
		b.name, b.lookAt = "", time.Now().Add(findEvery)
		return "", nil
	case err != nil:
		return "", fmt.Errorf("read Lease %s: %w", b.name, err)
	}
	before, version := b.version, VersionNumber(lease.ResourceVersion)
	same := b.uid == lease.UID
	b.uid, b.version = lease.UID, version
	if same && version < before {
		return fmt.Sprintf("Lease %s has resourceVersion %d, and was seen at %d before", b.name, version, before), nil
	}
	follows := version > reached || version == shown
	if b.stale = b.stale && !follows; same && shown != 0 && !follows && !b.stale {
		return fmt.Sprintf("Lease %s has resourceVersion %d, and the watch of Leases had come to %d and showed it at %d", b.name, version, reached, shown), nil
	}
	return "", nil
}

// wentBack forgets what was seen.
func (b *heartbeat) wentBack() { b.version, b.stale = 0, true }

// shown is how far the watch of Leases has come, and at which resourceVersion it shows the Lease;
// 0, 0 if that is not known.
func (b *heartbeat) shown(watch *Feed) (reached, version uint64) {
	if watch == nil {
		return 0, 0
	}
	reached = watch.Reached.Load() // first: the graph has everything up to there
	if v, ok := watch.Store.Find(b.uid); ok {
		version = VersionNumber(v.ResourceVersion)
	}
	return reached, version
}

func (b *heartbeat) find(ctx context.Context) bool {
	if time.Now().Before(b.lookAt) {
		return false
	}
	b.lookAt = time.Now().Add(findEvery)
	list, err := b.leases.List(ctx, metav1.ListOptions{LabelSelector: "apiserver.kubernetes.io/identity=kube-apiserver", Limit: 1})
	if err != nil || len(list.Items) == 0 || list.Items[0].Name == "" {
		return false
	}
	b.name, b.uid, b.version = list.Items[0].Name, "", 0
	return true
}
