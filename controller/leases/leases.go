package leases

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/weir-dev/weir/controller/await"
	"github.com/weir-dev/weir/controller/graph"
)

var resource = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}

// Lease is the leader's Lease for an elector that is made elsewhere, such as that of a manager. Its
// first Get returns when no other process holds the Lease. Once the Lease is held here Get does not
// wait, because a process that loses it must end at once. It is for one elector, which makes one
// call at a time.
type Lease struct {
	resourcelock.Interface
	every time.Duration // how often it is read without a change
	shown chan struct{} // has an element when a watch has shown a change
	log   logr.Logger
	// over is the record that has expired. The elector sees it for the first time, and would wait
	// for as long again.
	over    []byte
	renewed atomic.Bool
	since   *metav1.Time // when it was taken here; nil if it was not
	taken   chan struct{}
	lost    sync.Once // closes taken
}

// New returns a Lease, which is read once in every, and when Showing gets a change.
func New(lock resourcelock.Interface, every time.Duration, log logr.Logger) *Lease {
	return &Lease{Interface: lock, every: every, shown: make(chan struct{}, 1), log: log, taken: make(chan struct{})}
}

// Renewed reports whether another process was seen to take or renew the Lease. The name in a Lease
// does not say that its holder lives.
func (l *Lease) Renewed() bool { return l.renewed.Load() }

// Taken is closed when another process has taken the Lease that was held here. The elector itself
// would go on for as long as it may try to renew, which is meant for an API server that does not
// answer; meanwhile two would lead.
func (l *Lease) Taken() <-chan struct{} { return l.taken }

// Showing gets each object that a watch shows. Without it, a change is seen when the Lease is read
// next.
func (l *Lease) Showing(o *graph.Object) {
	if o.Kind != resource {
		return
	}
	if namespace, name, _ := strings.Cut(l.Describe(), "/"); o.Namespace != namespace || o.Name != name {
		return
	}
	await.Wake(l.shown)
}

// Get implements resourcelock.Interface. It shows an expired record as free. The Update that
// follows carries the resourceVersion, so a holder that comes back at that moment wins.
func (l *Lease) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	if l.since == nil {
		l.await(ctx)
	}
	record, raw, err := l.Interface.Get(ctx)
	if err != nil {
		return record, raw, err
	}
	if l.over != nil && bytes.Equal(raw, l.over) {
		record.HolderIdentity = ""
	}
	if l.since != nil && record.HolderIdentity != "" && record.HolderIdentity != l.Identity() {
		l.lost.Do(func() { close(l.taken) })
	}
	return record, raw, nil
}

// Create implements resourcelock.Interface.
func (l *Lease) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, l.Interface.Create, r)
}

// Update implements resourcelock.Interface.
func (l *Lease) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, l.Interface.Update, r)
}

// write sets the time when the Lease was taken: the elector looked at its clock before Get waited.
func (l *Lease) write(
	ctx context.Context, do func(context.Context, resourcelock.LeaderElectionRecord) error,
	r resourcelock.LeaderElectionRecord,
) error {
	switch {
	case r.HolderIdentity != l.Identity(): // it is given back
	case l.since == nil:
		now := metav1.Now()
		r.AcquireTime, r.RenewTime = now, now
		if err := do(ctx, r); err != nil {
			return err
		}
		l.since = &now
		return nil
	default:
		r.AcquireTime = *l.since
	}
	return do(ctx, r)
}

// await returns when no process holds the Lease, or ctx ends. The time without a renewal counts from
// when the last one was seen, not from what the holder wrote: clocks differ.
func (l *Lease) await(ctx context.Context) {
	var last []byte
	var seen time.Time
	var said, holder string
	for {
		record, raw, err := l.Interface.Get(ctx)
		now, again := time.Now(), l.every
		switch {
		case ctx.Err() != nil, apierrors.IsNotFound(err):
			return
		case err != nil:
			if said != err.Error() {
				said = err.Error()
				l.log.Info("cannot read the leader's Lease; will try again", "lease", l.Describe(), "err", said)
			}
		case record.HolderIdentity == "" || record.HolderIdentity == l.Identity():
			return
		default:
			if !bytes.Equal(raw, last) {
				if last != nil {
					l.renewed.Store(true)
				}
				last, seen = raw, now
			}
			if holder != record.HolderIdentity {
				holder = record.HolderIdentity
				l.log.Info("another process holds the leader's Lease, and this one waits for it",
					"lease", l.Describe(), "holder", holder)
			}
			left := seen.Add(time.Duration(record.LeaseDurationSeconds) * time.Second).Sub(now)
			if left <= 0 {
				l.over = raw
				return
			}
			again = min(again, left)
		}
		timer := time.NewTimer(again)
		select {
		case <-ctx.Done():
		case <-l.shown:
		case <-timer.C:
		}
		timer.Stop()
	}
}
