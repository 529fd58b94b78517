package beside

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/leases"
)

// Migration is a Lease that the collector holds: Weir, or a kube-controller-manager that has its
// two controllers wait for it (--enable-leader-migration). One of them collects, and when it ends
// the other begins. See
// https://kubernetes.io/docs/tasks/administer-cluster/controller-manager-leader-migration/.
type Migration struct {
	vacancy *leases.Vacancy
	// lasts is how long the Lease is valid without renewal when this process holds it.
	lasts time.Duration
	log   logr.Logger
	waits atomic.Bool
}

// NewMigration returns a Migration. lasts is how long the Lease is valid without renewal when this
// process holds it: about the longest time in which no process collects.
func NewMigration(lock resourcelock.Interface, lasts time.Duration, log logr.Logger) *Migration {
	return &Migration{vacancy: leases.NewVacancy(lock, "the migration Lease", log), lasts: lasts, log: log}
}

// Showing is called with each object that a watch shows, so that a change of the Lease is seen at
// once. Without it Hold sees one a second late.
func (m *Migration) Showing(o *graph.Object) { m.vacancy.Showing(o) }

// ErrMigrationLease ends the work under the Lease: another process may hold it now.
var ErrMigrationLease = errors.New("the migration Lease was lost")

// Waits reports whether Hold waits because another process holds the Lease.
func (m *Migration) Waits() bool { return m.waits.Load() }

// Hold waits for the Lease, calls work while it holds it, and gives it back after that. The context
// of work ends when ctx does, or when the Lease is lost. Then Hold returns ErrMigrationLease,
// unless work returns an error of its own.
func (m *Migration) Hold(ctx context.Context, work func(context.Context) error) error {
	held := make(chan context.Context, 1)            // the context of the Lease
	lock := leases.NewElected(m.vacancy, m.lasts/15) // its first Get waits until no other process holds the Lease
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		// The elector would give the Lease back before it says that it is lost, and take its time.
		Lock: lock, LeaseDuration: m.lasts, RenewDeadline: m.lasts * 2 / 3, RetryPeriod: m.lasts / 15, ReleaseOnCancel: false, Name: lock.Describe(),
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(leading context.Context) { held <- leading },
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return fmt.Errorf("set up the migration Lease %s: %w", lock.Describe(), err)
	}
	electing, giveUp := context.WithCancel(context.WithoutCancel(ctx)) // the Lease is kept until work has ended
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
		m.log.Info("collecting under the migration Lease", "lease", m.vacancy.Describe())
		return m.under(ctx, leading, lock.Taken(), work)
	}
}

// under calls work until ctx ends, the Lease is lost, or another process has taken it, after which
// the elector would go on for a while.
func (m *Migration) under(ctx, leading context.Context, taken <-chan struct{}, work func(context.Context) error) error {
	working, stop := context.WithCancel(ctx)
	defer context.AfterFunc(leading, stop)()
	var watched sync.WaitGroup
	watched.Go(func() {
		select {
		case <-taken:
			stop()
		case <-working.Done():
		}
	})
	err := work(working)
	stop()
	watched.Wait()
	if err == nil && ctx.Err() == nil {
		return fmt.Errorf("%w: %s", ErrMigrationLease, m.vacancy.Describe())
	}
	return err
}

// giveBack releases the Lease, so that the next holder need not wait until it expires.
func (m *Migration) giveBack(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
	defer cancel()
	record, _, err := m.vacancy.Get(ctx)
	if err == nil && record.HolderIdentity == m.vacancy.Identity() {
		now := metav1.Now()
		err = m.vacancy.Update(ctx, resourcelock.LeaderElectionRecord{LeaderTransitions: record.LeaderTransitions, LeaseDurationSeconds: 1, RenewTime: now, AcquireTime: now})
	}
	if err != nil {
		m.log.Info("the migration Lease was not given back: whoever waits for it waits until it is over", "lease", m.vacancy.Describe(), "err", err.Error())
	}
}
