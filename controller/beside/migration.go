package beside

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// Migration is a Lease that whoever collects holds: Weir, or a kube-controller-manager that has its two controllers wait for it
// (--enable-leader-migration). So one of them collects, and when it ends the other begins.
// See https://kubernetes.io/docs/tasks/administer-cluster/controller-manager-leader-migration/.
type Migration struct {
	Lock resourcelock.Interface
	// Lasts is how long the Lease is valid without renewal: about the longest time in which nobody collects.
	Lasts time.Duration
	Log   logr.Logger

	waits atomic.Bool
}

// ErrMigrationLease ends what is done under the Lease: another process may hold it now.
var ErrMigrationLease = errors.New("the migration Lease was lost")

// Waits tells whether another process holds the Lease, so that Hold waits.
func (m *Migration) Waits() bool { return m.waits.Load() }

// Hold waits for the Lease, does the work while it has it, and gives it back when the work has ended. The context of the work ends when ctx does,
// or when the Lease is lost: then Hold returns ErrMigrationLease, unless the work returns an error of its own.
func (m *Migration) Hold(ctx context.Context, work func(context.Context) error) error {
	held := make(chan context.Context, 1) // that of the Lease
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		// While it waits it looks often: a Lease that is not renewed any more is over the later, the later its last renewal was seen.
		// The elector would give the Lease back before it says that it is lost, and take its time.
		Lock: m.Lock, LeaseDuration: m.Lasts, RenewDeadline: m.Lasts * 2 / 3, RetryPeriod: m.Lasts / 15, ReleaseOnCancel: false, Name: m.Lock.Describe(),
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(leading context.Context) { held <- leading },
			OnStoppedLeading: func() {},
			OnNewLeader: func(identity string) {
				if identity != m.Lock.Identity() {
					m.Log.Info("another process collects under the migration Lease, and this one waits for it", "lease", m.Lock.Describe(), "holder", identity)
				}
			},
		},
	})
	if err != nil {
		return fmt.Errorf("set up the migration Lease %s: %w", m.Lock.Describe(), err)
	}
	electing, giveUp := context.WithCancel(context.WithoutCancel(ctx)) // it is kept until the work has ended
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		elector.Run(electing)
	}()
	defer func() {
		giveUp()
		<-ended
		m.giveBack(ctx)
	}()
	m.waits.Store(true)
	defer m.waits.Store(false)
	select {
	case <-ctx.Done():
		return nil
	case leading := <-held:
		m.waits.Store(false)
		m.Log.Info("collecting under the migration Lease", "lease", m.Lock.Describe())
		return m.under(ctx, leading, work)
	}
}

// under does the work until ctx ends, or the Lease is lost.
func (m *Migration) under(ctx, leading context.Context, work func(context.Context) error) error {
	working, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(leading, stop)()
	err := work(working)
	if err == nil && ctx.Err() == nil {
		return fmt.Errorf("%w: %s", ErrMigrationLease, m.Lock.Describe())
	}
	return err
}

// giveBack has the next one not wait until the Lease is over.
func (m *Migration) giveBack(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
	defer cancel()
	record, _, err := m.Lock.Get(ctx)
	if err == nil && record.HolderIdentity == m.Lock.Identity() {
		now := metav1.Now()
		err = m.Lock.Update(ctx, resourcelock.LeaderElectionRecord{LeaderTransitions: record.LeaderTransitions, LeaseDurationSeconds: 1, RenewTime: now, AcquireTime: now})
	}
	if err != nil {
		m.Log.Info("the migration Lease was not given back: whoever waits for it waits until it is over", "lease", m.Lock.Describe(), "err", err.Error())
	}
}
