package leases

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

var resource = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}

const (
	lasts = 15 * time.Second
	retry = lasts / 7
)

// stored is a Lease as an API server has it: who writes has to know the version that is there.
type stored struct {
	mu      sync.Mutex
	record  *resourcelock.LeaderElectionRecord
	version int
	broken  bool
}

// lock is one process's view of it.
type lock struct {
	*stored
	identity string
	knows    int
}

func (l *lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return nil, nil, ctx.Err()
	case l.broken:
		return nil, nil, errors.New("no answer")
	case l.record == nil:
		return nil, nil, apierrors.NewNotFound(resource, "weir")
	}
	record := *l.record
	raw, err := json.Marshal(record)
	l.knows = l.version
	return &record, raw, err
}

func (l *lock) Create(_ context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.write(r, func() bool { return l.record == nil })
}

func (l *lock) Update(_ context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.write(r, func() bool { return l.record != nil && l.version == l.knows })
}

func (l *lock) write(r resourcelock.LeaderElectionRecord, may func() bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.broken:
		return errors.New("no answer")
	case !may():
		return apierrors.NewConflict(resource, "weir", errors.New("it has changed"))
	}
	l.version++
	l.record, l.knows = &r, l.version
	return nil
}

func (l *lock) RecordEvent(string) {}
func (l *lock) Identity() string   { return l.identity }
func (l *lock) Describe() string   { return "weir-system/weir" }

// elect runs an elector until ctx ends, and returns when it leads.
func elect(ctx context.Context, t *testing.T, l resourcelock.Interface) (leads chan time.Time, ended chan struct{}) {
	t.Helper()
	leads, ended = make(chan time.Time, 1), make(chan struct{})
	e, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: l, LeaseDuration: lasts, RenewDeadline: lasts * 2 / 3, RetryPeriod: retry, ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(context.Context) {
			leads <- time.Now()
		}, OnStoppedLeading: func() {}},
	})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(ended)
		e.Run(ctx)
	}()
	return leads, ended
}

// TestWhoLosesTheLeaseEndsInTime: another took it meanwhile, or the API server does not answer.
// Nothing waits for that other then, and no one leads when another may.
func TestWhoLosesTheLeaseEndsInTime(t *testing.T) {
	for name, c := range map[string]struct {
		lose func(*stored)
		in   time.Duration
	}{
		"taken": {func(l *stored) {
			l.record = &resourcelock.LeaderElectionRecord{HolderIdentity: "other", LeaseDurationSeconds: 15}
			l.version++
		}, retry + time.Second},
		"no answer": {func(l *stored) { l.broken = true }, lasts},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var l stored
				e := New(&lock{stored: &l, identity: "weir"})
				leads, ended := elect(t.Context(), t, e)
				<-leads
				time.Sleep(time.Minute)
				l.mu.Lock()
				c.lose(&l)
				l.mu.Unlock()
				lost := time.Now()
				select {
				case <-e.Taken():
				case <-ended:
				}
				if took := time.Since(lost); took >= c.in {
					t.Errorf("it led for %s after it had lost the Lease, want less than %s", took, c.in)
				}
				<-ended
			})
		})
	}
}

// TestOnlyAnotherProcessThatRenewsIsSeenToLead: what a Lease says may have been written by a
// process that is gone.
func TestOnlyAnotherProcessThatRenewsIsSeenToLead(t *testing.T) {
	old := resourcelock.LeaderElectionRecord{HolderIdentity: "leader", LeaseDurationSeconds: 15}
	taken := resourcelock.LeaderElectionRecord{HolderIdentity: "other", LeaseDurationSeconds: 15}
	for name, c := range map[string]struct {
		finds, becomes *resourcelock.LeaderElectionRecord
		renews, want   bool
	}{
		"there is none":      {},
		"its holder is gone": {finds: &old},
		"its holder gives it back": {finds: &old,
			becomes: &resourcelock.LeaderElectionRecord{LeaseDurationSeconds: 1}},
		"its holder lives":                   {finds: &old, renews: true, want: true},
		"another takes what was given back":  {finds: &old, becomes: &taken, want: true},
		"it was given back, and is not held": {finds: &resourcelock.LeaderElectionRecord{LeaseDurationSeconds: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			l := stored{record: c.finds}
			v := New(&lock{stored: &l, identity: "standby"})
			for i := range 3 {
				if _, _, err := v.Get(t.Context()); err != nil && !apierrors.IsNotFound(err) {
					t.Fatal(err)
				}
				if c.becomes != nil {
					l.record = c.becomes
				}
				if c.renews {
					renewed := *l.record
					renewed.RenewTime = metav1.NewTime(time.Unix(int64(i), 0))
					l.record = &renewed
				}
			}
			if v.Renewed() != c.want {
				t.Errorf("seen to be renewed: %t, want %t", v.Renewed(), c.want)
			}
		})
	}
}
