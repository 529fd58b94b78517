package leases

import (
	"bytes"
	"context"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/weir-dev/weir/controller/graph"
)

var resource = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}

// Vacancy waits until no process holds a Lease, and is the Lease for the elector that takes it
// then. An elector by itself polls: it sees the last renewal late, and the end of the Lease late
// again.
type Vacancy struct {
	resourcelock.Interface
	called string        // what messages call the Lease
	shown  chan struct{} // has an element when a watch has shown a change
	log    logr.Logger
	// over is the record that has expired. The elector sees it for the first time, and would wait
	// for as long again.
	over    []byte
	renewed atomic.Bool
}

// NewVacancy returns a Vacancy of a Lease, which messages call called.
func NewVacancy(lock resourcelock.Interface, called string, log logr.Logger) *Vacancy {
	return &Vacancy{Interface: lock, called: called, shown: make(chan struct{}, 1), log: log}
}

// Get implements resourcelock.Interface. It shows an expired record as free. The Update that
// follows carries the resourceVersion, so a holder that comes back at that moment wins.
func (v *Vacancy) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := v.Interface.Get(ctx)
	if err == nil && v.over != nil && bytes.Equal(raw, v.over) {
		record.HolderIdentity = ""
	}
	return record, raw, err
}

// Renewed reports whether Await has seen another process take or renew the Lease. The name in a
// Lease does not say that its holder lives.
func (v *Vacancy) Renewed() bool { return v.renewed.Load() }

// Showing gets each object that a watch shows. Without it, Await sees a change when it reads the
// Lease next.
func (v *Vacancy) Showing(o *graph.Object) {
	if o.Kind != resource {
		return
	}
	if namespace, name, _ := strings.Cut(v.Describe(), "/"); o.Namespace != namespace || o.Name != name {
		return
	}
	select {
	case v.shown <- struct{}{}:
	default:
	}
}

// Await returns true when no process holds the Lease, and false when ctx ends. It reads the Lease
// when a watch shows a change, and once in every. The time without a renewal counts from when the
// last one was seen, not from what the holder wrote: clocks differ.
func (v *Vacancy) Await(ctx context.Context, every time.Duration) bool {
	var last []byte
	var seen time.Time
	var said, holder string
	for {
		record, raw, err := v.Interface.Get(ctx)
		now, again := time.Now(), every
		switch {
		case ctx.Err() != nil:
			return false
		case apierrors.IsNotFound(err):
			return true
		case err != nil:
			if said != err.Error() {
				said = err.Error()
				v.log.Info("cannot read "+v.called+"; will try again", "lease", v.Describe(), "err", said)
			}
		case record.HolderIdentity == "" || record.HolderIdentity == v.Identity():
			return true
		default:
			if !bytes.Equal(raw, last) {
				if last != nil {
					v.renewed.Store(true)
				}
				last, seen = raw, now
			}
			if holder != record.HolderIdentity {
				holder = record.HolderIdentity
				v.log.Info("another process holds "+v.called+", and this one waits for it",
					"lease", v.Describe(), "holder", holder)
			}
			left := seen.Add(time.Duration(record.LeaseDurationSeconds) * time.Second).Sub(now)
			if left <= 0 {
				v.over = raw
				return true
			}
			again = min(again, left)
		}
		if !v.pause(ctx, again) {
			return false
		}
	}
}

// pause waits for a change or a time. It returns false when ctx ends.
func (v *Vacancy) pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-v.shown:
	case <-timer.C:
	}
	return true
}
