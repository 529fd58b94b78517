package leases

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/weir-dev/weir/controller/graph"
)

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
	changed func()
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
	if l.changed != nil {
		l.changed()
	}
	return nil
}

func (l *lock) RecordEvent(string) {}
func (l *lock) Identity() string   { return l.identity }
func (l *lock) Describe() string   { return "weir-system/weir" }

func (l *stored) is() resourcelock.LeaderElectionRecord {
	l.mu.Lock()
	defer l.mu.Unlock()
	return *l.record
}

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

// renewing keeps a Lease as a leader does, until it is killed: then nothing gives it back.
func renewing(ctx context.Context, t *testing.T, l *lock, lastly *time.Time) {
	t.Helper()
	for {
		now := metav1.Now()
		r := resourcelock.LeaderElectionRecord{HolderIdentity: l.identity, LeaseDurationSeconds: int(lasts / time.Second),
			RenewTime: now, AcquireTime: now}
		var err error
		if l.knows == 0 {
			err = l.Create(ctx, r)
		} else {
			err = l.Update(ctx, r)
		}
		if err != nil {
			t.Error(err)
			return
		}
		*lastly = time.Now()
		select {
		case <-ctx.Done():
			return
		case <-time.After(retry):
		}
	}
}

// TestAStandbyTakesTheLeaseWhenItIsOver, wherever in its time the leader is killed. By the elector
// alone it is up to nine seconds later.
func TestAStandbyTakesTheLeaseWhenItIsOver(t *testing.T) {
	const kills, seed = 200, 16
	random := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d, %d kills", seed, kills)
	for _, c := range []struct {
		name    string
		watched bool
		alone   bool          // the elector waits by itself
		late    time.Duration // after the Lease is over, at most
	}{
		{"by a watch", true, false, 0}, {"by reading", false, false, lasts / 15},
		{"by the elector alone", false, true, retry * 2 * 22 / 10}, // twice it waits a retry and up to 1.2 more
	} {
		t.Run(c.name, func(t *testing.T) {
			latest := time.Duration(0)
			for range kills {
				killedAt := time.Minute + time.Duration(random.Int64N(int64(10*time.Second)))
				synctest.Test(t, func(t *testing.T) {
					var l stored
					v := New(&lock{stored: &l, identity: "standby"}, lasts/15, logr.Discard())
					if c.watched {
						l.changed = func() { v.Showing(&graph.Object{Kind: resource, Namespace: "weir-system", Name: "weir"}) }
					}
					lives, kill := context.WithTimeout(t.Context(), killedAt)
					defer kill()
					var lastly time.Time
					done := make(chan struct{})
					go func() {
						defer close(done)
						renewing(lives, t, &lock{stored: &l, identity: "leader"}, &lastly)
					}()
					synctest.Wait() // it holds the Lease
					ctx, end := context.WithCancel(t.Context())
					var standby resourcelock.Interface = v
					if c.alone {
						standby = v.Interface
					}
					leads, ended := elect(ctx, t, standby)
					at := <-leads
					<-done
					latest = max(latest, at.Sub(lastly)-lasts)
					if took := at.Sub(lastly); took < lasts || took > lasts+c.late {
						t.Errorf("killed after %s: taken %s after the last renewal, want %s and at most %s more",
							killedAt, took, lasts, c.late)
					}
					time.Sleep(20 * lasts)
					if r := l.is(); r.HolderIdentity != "standby" || !c.alone && !r.AcquireTime.Time.Equal(at) ||
						time.Since(r.RenewTime.Time) > retry {
						t.Errorf("an hour later: %+v; it was taken at %s", r, at)
					}
					end()
					<-ended
					if r := l.is(); r.HolderIdentity != "" {
						t.Errorf("it was not given back: %+v", r)
					}
				})
			}
			t.Logf("%s late at the most", latest)
			if c.alone && latest < 2*time.Second {
				t.Errorf("the elector alone is %s late at the most: nothing else has to wait for the Lease any more", latest)
			}
		})
	}
}

// TestAStandbyTakesWhatIsGivenBackAtOnce: a leader that ends as it was told gives its Lease back.
func TestAStandbyTakesWhatIsGivenBackAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l stored
		v := New(&lock{stored: &l, identity: "second"}, lasts/15, logr.Discard())
		l.changed = func() { v.Showing(&graph.Object{Kind: resource, Namespace: "weir-system", Name: "weir"}) }
		first, end := context.WithCancel(t.Context())
		leads, ended := elect(first, t, New(&lock{stored: &l, identity: "first"}, lasts/15, logr.Discard()))
		<-leads
		second, end2 := context.WithCancel(t.Context())
		leads, ended2 := elect(second, t, v)
		time.Sleep(time.Minute)
		select {
		case <-leads:
			t.Fatal("both lead")
		default:
		}
		end()
		<-ended
		gave := time.Now()
		if took := (<-leads).Sub(gave); took > 0 {
			t.Errorf("taken %s later", took)
		}
		end2()
		<-ended2
	})
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
				e := New(&lock{stored: &l, identity: "weir"}, lasts/15, logr.Discard())
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

func TestAStandbyEndsWhileItWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := stored{record: &resourcelock.LeaderElectionRecord{HolderIdentity: "leader", LeaseDurationSeconds: 1 << 30}}
		ctx, end := context.WithTimeout(t.Context(), time.Minute)
		defer end()
		leads, ended := elect(ctx, t, New(&lock{stored: &l, identity: "standby"}, lasts/15, logr.Discard()))
		<-ended
		if took := len(leads); took != 0 || l.is().HolderIdentity != "leader" {
			t.Errorf("%d lead; the Lease: %+v", took, l.is())
		}
	})
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
			synctest.Test(t, func(t *testing.T) {
				l := stored{record: c.finds}
				v := New(&lock{stored: &l, identity: "standby"}, time.Second, logr.Discard())
				ctx, end := context.WithTimeout(t.Context(), 20*time.Second)
				defer end()
				done := make(chan bool)
				go func() {
					_, _, err := v.Get(ctx)
					done <- err == nil || apierrors.IsNotFound(err)
				}()
				for range 10 {
					time.Sleep(time.Second + time.Millisecond)
					l.mu.Lock()
					if c.becomes != nil {
						l.record = c.becomes
					}
					if c.renews {
						renewed := *l.record
						renewed.RenewTime = metav1.Now()
						l.record = &renewed
					}
					l.mu.Unlock()
				}
				if end(); !c.renews {
					<-done
				} else if <-done {
					t.Error("two hold the Lease")
				}
				if v.Renewed() != c.want {
					t.Errorf("seen to be renewed: %t, want %t", v.Renewed(), c.want)
				}
			})
		})
	}
}

// TestAHolderThatComesBackKeepsTheLease: it renews at the moment in which the Lease would be over.
func TestAHolderThatComesBackKeepsTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := stored{record: &resourcelock.LeaderElectionRecord{HolderIdentity: "another",
			LeaseDurationSeconds: 15}}
		v := New(&lock{stored: &l, identity: "weir"}, time.Second, logr.Discard())
		if record, _, err := v.Get(t.Context()); err != nil || record.HolderIdentity != "" {
			t.Errorf("%v held by %q, want no one", err, record.HolderIdentity)
		}
		other := lock{stored: &l, identity: "another"}
		if err := other.Update(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: other.identity,
			LeaseDurationSeconds: 15, RenewTime: metav1.Now()}); err != nil {
			t.Fatal(err)
		}
		if err := v.Update(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "weir"}); !apierrors.IsConflict(err) {
			t.Errorf("taken from its holder: %v", err)
		}
		if record := l.is(); record.HolderIdentity != other.identity {
			t.Errorf("held by %q, want %q", record.HolderIdentity, other.identity)
		}
	})
}

// TestOnlyTheLeaseWakesWhoWaitsForIt: others change all the time. While it cannot be read, that is
// told once, and no process takes it.
func TestOnlyTheLeaseWakesWhoWaitsForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := stored{record: &resourcelock.LeaderElectionRecord{HolderIdentity: "another",
			LeaseDurationSeconds: 15}, broken: true}
		var lines []string
		v := New(&lock{stored: &l, identity: "weir"}, time.Second, funcr.New(func(_, line string) {
			lines = append(lines, line)
		}, funcr.Options{}))
		for _, o := range []graph.Object{
			{Kind: resource, Namespace: "weir-system", Name: "others"},
			{Kind: resource, Namespace: "kube-node-lease", Name: "weir"},
			{Kind: schema.GroupResource{Resource: "configmaps"}, Namespace: "weir-system", Name: "weir"},
		} {
			if v.Showing(&o); len(v.shown) != 0 {
				t.Errorf("%s %s/%s wakes it", o.Kind, o.Namespace, o.Name)
			}
		}
		for range 3 {
			v.Showing(&graph.Object{Kind: resource, Namespace: "weir-system", Name: "weir"}) // and no goroutine listens yet
		}
		if len(v.shown) != 1 {
			t.Errorf("%d changes are waiting, want one", len(v.shown))
		}
		ctx, end := context.WithTimeout(t.Context(), time.Hour)
		defer end()
		if record, _, err := v.Get(ctx); err == nil {
			t.Errorf("shown as held by %q, and nobody knows who holds it", record.HolderIdentity)
		}
		if len(lines) != 1 || !strings.Contains(lines[0], "cannot read the leader's Lease; will try again") {
			t.Errorf("the log says %q", lines)
		}
	})
}
