package leases

import (
	"bytes"
	"context"
	"sync"
	"sync/atomic"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// Lease is the leader's Lease for an elector that is made elsewhere, such as that of a manager. It
// is for one elector, which makes one call at a time.
type Lease struct {
	resourcelock.Interface
	others  []byte // what another process wrote last; nil: none was seen to hold it
	renewed atomic.Bool
	held    bool
	taken   chan struct{}
	lost    sync.Once // closes taken
}

// New returns a Lease.
func New(lock resourcelock.Interface) *Lease {
	return &Lease{Interface: lock, taken: make(chan struct{})}
}

// Renewed reports whether another process was seen to take or renew the Lease. The name in a Lease
// does not say that its holder lives.
func (l *Lease) Renewed() bool { return l.renewed.Load() }

// Taken is closed when another process has taken the Lease that was held here. The elector itself
// would go on for as long as it may try to renew, which is meant for an API server that does not
// answer; meanwhile two would lead.
func (l *Lease) Taken() <-chan struct{} { return l.taken }

// Get implements resourcelock.Interface.
func (l *Lease) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	if err != nil || record.HolderIdentity == "" || record.HolderIdentity == l.Identity() {
		return record, raw, err
	}
	if l.held {
		l.lost.Do(func() { close(l.taken) })
	}
	if l.others != nil && !bytes.Equal(raw, l.others) {
		l.renewed.Store(true)
	}
	l.others = raw
	return record, raw, nil
}

// Create implements resourcelock.Interface.
func (l *Lease) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.wrote(r, l.Interface.Create(ctx, r))
}

// Update implements resourcelock.Interface.
func (l *Lease) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.wrote(r, l.Interface.Update(ctx, r))
}

func (l *Lease) wrote(r resourcelock.LeaderElectionRecord, err error) error {
	l.held = l.held || err == nil && r.HolderIdentity == l.Identity()
	return err
}
