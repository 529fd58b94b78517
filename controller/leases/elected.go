package leases

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// Elected is the Lease for an elector that is made elsewhere, such as that of a manager. Its first
// Get returns when no other process holds the Lease. Once the Lease is held here Get does not wait,
// because a process that loses it must end at once. It is for one elector, which makes one call at
// a time.
type Elected struct {
	*Vacancy
	every time.Duration
	since *metav1.Time // when it was taken here; nil if it was not
	taken chan struct{}
	lost  sync.Once // closes taken
}

// NewElected returns an Elected. It reads the Lease once in every, and when Showing gets a change.
func NewElected(v *Vacancy, every time.Duration) *Elected {
	return &Elected{Vacancy: v, every: every, taken: make(chan struct{})}
}

// Taken is closed when another process has taken the Lease that was held here. The elector itself
// would go on for as long as it may try to renew, which is meant for an API server that does not
// answer; meanwhile two would lead.
func (e *Elected) Taken() <-chan struct{} { return e.taken }

// Get implements resourcelock.Interface.
func (e *Elected) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	if e.since == nil {
		e.Await(ctx, e.every)
	}
	record, raw, err := e.Vacancy.Get(ctx)
	if err == nil && e.since != nil && record.HolderIdentity != "" && record.HolderIdentity != e.Identity() {
		e.lost.Do(func() { close(e.taken) })
	}
	return record, raw, err
}

// Create implements resourcelock.Interface.
func (e *Elected) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return e.write(ctx, e.Interface.Create, r)
}

// Update implements resourcelock.Interface.
func (e *Elected) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return e.write(ctx, e.Interface.Update, r)
}

// write sets the time when the Lease was taken: the elector looked at its clock before Get waited.
func (e *Elected) write(
	ctx context.Context, do func(context.Context, resourcelock.LeaderElectionRecord) error,
	r resourcelock.LeaderElectionRecord,
) error {
	switch {
	case r.HolderIdentity != e.Identity(): // it is given back
	case e.since == nil:
		now := metav1.Now()
		r.AcquireTime, r.RenewTime = now, now
		if err := do(ctx, r); err != nil {
			return err
		}
		e.since = &now
		return nil
	default:
		r.AcquireTime = *e.since
	}
	return do(ctx, r)
}
