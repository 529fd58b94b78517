package beside

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/weir-dev/weir/controller/graph"
)

// lease is a Lease that several processes see; the API server fails while it is broken.
type lease struct {
	mu     sync.Mutex
	record *resourcelock.LeaderElectionRecord
	broken bool
	taken  bool // another wrote it since a process has read it
}

// lock is one process's view of it.
type lock struct {
	*lease
	identity string
}

func (l *lock) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.broken:
		return nil, nil, errors.New("no answer")
	case l.record == nil:
		return nil, nil, apierrors.NewNotFound(schema.GroupResource{Resource: "leases"}, "collectors")
	}
	l.taken = false
	record := *l.record
	raw, err := json.Marshal(record)
	return &record, raw, err
}

func (l *lock) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.Update(ctx, r)
}

func (l *lock) Update(_ context.Context, r resourcelock.LeaderElectionRecord) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken {
		return errors.New("no answer")
	}
	if l.taken {
		return apierrors.NewConflict(schema.GroupResource{Resource: "leases"}, "collectors", errors.New("it has changed"))
	}
	l.record = &r
	return nil
}

func (l *lock) RecordEvent(string) {}
func (l *lock) Identity() string   { return l.identity }
func (l *lock) Describe() string   { return "kube-system/collectors" }
func (l *lease) holder() string    { l.mu.Lock(); defer l.mu.Unlock(); return l.record.HolderIdentity }
func (l *lease) breaks()           { l.mu.Lock(); defer l.mu.Unlock(); l.broken = true }
func (l *lease) migration(identity string) *Migration {
	return NewMigration(&lock{l, identity}, 15*time.Second, logr.Discard())
}

// worker is work that tells when it begins and ends, and takes its time to end.
type worker struct{ began, ended chan struct{} }

// toEnd is how long it takes.
const toEnd = time.Second

func newWorker() worker { return worker{make(chan struct{}), make(chan struct{})} }

func (w worker) work(ctx context.Context) error {
	close(w.began)
	<-ctx.Done()
	time.Sleep(toEnd)
	close(w.ended)
	return nil
}

func TestTheLeaseIsGivenBackWhenTheWorkHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l lease
		first, second := l.migration("kube-controller-manager"), l.migration("weir")
		a, b := newWorker(), newWorker()
		ctx, end := context.WithCancel(t.Context())
		var errs [2]error
		var wg sync.WaitGroup
		wg.Go(func() { errs[0] = first.Hold(ctx, a.work) })
		<-a.began
		ctx2, end2 := context.WithCancel(t.Context())
		wg.Go(func() { errs[1] = second.Hold(ctx2, b.work) })
		time.Sleep(time.Minute)
		if !second.Waits() || first.Waits() {
			t.Errorf("the one that holds it waits: %t; the other waits: %t", first.Waits(), second.Waits())
		}
		end()
		stopped := time.Now()
		<-b.began
		select {
		case <-a.ended:
		default:
			t.Error("the other began before the work had ended")
		}
		if took := time.Since(stopped); took > toEnd+time.Second {
			t.Errorf("the other began %s later, although the Lease was given back when the work had ended", took)
		}
		end2()
		wg.Wait()
		if errs[0] != nil || errs[1] != nil {
			t.Errorf("Hold: %v, %v", errs[0], errs[1])
		}
		if holder := l.holder(); holder != "" {
			t.Errorf("%s still holds it", holder)
		}
	})
}

func TestWorkEndsWhenTheLeaseIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l lease
		m, w := l.migration("weir"), newWorker()
		result := make(chan error)
		go func() { result <- m.Hold(t.Context(), w.work) }()
		<-w.began
		l.breaks()
		lost := time.Now()
		<-w.ended
		if took := time.Since(lost); took > m.lasts {
			t.Errorf("the work ended %s after the API server did not answer any more, and the Lease lasts %s", took, m.lasts)
		}
		if err := <-result; !errors.Is(err, ErrMigrationLease) {
			t.Errorf("Hold: %v", err)
		}
	})
}

// TestWorkEndsWhenAnotherHasTakenTheLease: at the next look at the Lease, and not only when it
// would be over.
func TestWorkEndsWhenAnotherHasTakenTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l lease
		m, w := l.migration("weir"), newWorker()
		result := make(chan error)
		go func() { result <- m.Hold(t.Context(), w.work) }()
		<-w.began
		time.Sleep(time.Minute)
		other := &lock{&l, "kube-controller-manager"}
		if err := other.Update(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: other.identity, LeaseDurationSeconds: 15, RenewTime: metav1.Now()}); err != nil {
			t.Fatal(err)
		}
		l.mu.Lock()
		l.taken = true
		l.mu.Unlock()
		lost := time.Now()
		<-w.ended
		if took := time.Since(lost); took > m.lasts/15+toEnd {
			t.Errorf("the work ended %s after another had taken the Lease", took)
		}
		if err := <-result; !errors.Is(err, ErrMigrationLease) || l.holder() != other.identity {
			t.Errorf("Hold: %v; %q holds it", err, l.holder())
		}
	})
}

func TestWhoWaitsForTheLeaseCanEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := lease{record: &resourcelock.LeaderElectionRecord{HolderIdentity: "kube-controller-manager", LeaseDurationSeconds: 15}}
		ctx, end := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, end)
		err := l.migration("weir").Hold(ctx, func(context.Context) error {
			t.Error("it collects")
			return nil
		})
		if err != nil || l.holder() != "kube-controller-manager" {
			t.Errorf("Hold: %v; %q holds it", err, l.holder())
		}
	})
}

// TestTheLeaseIsTakenWhenItIsOver: it was renewed every two seconds, and then its holder died. How
// soon its end is seen depends on how soon its last renewal was: at once where a watch shows it,
// else a second later at most.
func TestTheLeaseIsTakenWhenItIsOver(t *testing.T) {
	for _, c := range []struct {
		watched bool
		late    time.Duration
	}{{true, 0}, {false, time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			const lasts = 15 * time.Second
			var l lease
			m, w := l.migration("weir"), newWorker()
			other := &lock{&l, "kube-controller-manager"}
			renew := func() {
				now := metav1.Now()
				if err := other.Update(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: other.identity, LeaseDurationSeconds: 15, RenewTime: now}); err != nil {
					t.Fatal(err)
				}
				if c.watched {
					m.Showing(&graph.Object{Kind: schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}, Namespace: "kube-system", Name: "collectors"})
				}
			}
			renew()
			ctx, end := context.WithCancel(t.Context())
			result := make(chan error, 1)
			go func() { result <- m.Hold(ctx, w.work) }()
			for range 30 {
				time.Sleep(2300 * time.Millisecond)
				select {
				case <-w.began:
					t.Fatal("the Lease is renewed, and another takes it")
				default:
					renew()
				}
			}
			last := time.Now()
			<-w.began
			if took := time.Since(last); took < lasts || took > lasts+c.late {
				t.Errorf("watched %t: taken %s after the last renewal, want %s and at most %s later", c.watched, took, lasts, c.late)
			}
			end()
			if err := <-result; err != nil {
				t.Error(err)
			}
		})
	}
}
