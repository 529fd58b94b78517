package beside

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/weir-dev/weir/controller/events"
	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/kinds"
	"github.com/weir-dev/weir/internal/testkit/fixture"
	"github.com/weir-dev/weir/policies"
	"github.com/weir-dev/weir/policies/v1beta1"
)

var configMaps = corev1.SchemeGroupVersion.WithResource("configmaps")

// cage is a canary on the clock of a bubble, and a cluster in which another collector works, or
// does not.
type cage struct {
	*Canary
	client   *fake.Clientset
	registry *prometheus.Registry

	mu        sync.Mutex
	made      int
	told      []string
	deletes   time.Duration // how long the other collector takes; negative: there is none
	forbidden bool
}

func newCage(t *testing.T, deletes time.Duration) *cage {
	k := &cage{client: fake.NewClientset(), registry: prometheus.NewRegistry(), deletes: deletes}
	k.client.PrependReactor("create", "configmaps", func(a clienttesting.Action) (bool, runtime.Object, error) {
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.forbidden {
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, v1beta1.CollectorCanary, errors.New("not allowed"))
		}
		k.made++
		cm := a.(clienttesting.CreateAction).GetObject().(*corev1.ConfigMap)
		cm.UID, cm.CreationTimestamp = types.UID(fmt.Sprint("canary-", k.made)), metav1.Now()
		if k.deletes >= 0 {
			time.AfterFunc(k.deletes, func() { k.remove(t) })
		}
		return false, nil, nil
	})
	k.Canary = New(Options{ConfigMaps: k.client.CoreV1().ConfigMaps("home"), Namespace: "home", Now: time.Now, Reporter: k, Registry: k.registry, Log: logr.Discard()})
	return k
}

func (k *cage) remove(t *testing.T) {
	if err := k.client.Tracker().Delete(configMaps, "home", v1beta1.CollectorCanary); err != nil {
		t.Errorf("delete the canary: %v", err)
	}
}

func (k *cage) set(change func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	change()
}

func (k *cage) Warn(_ graph.Ref, reason, text string) {
	if text = text[:strings.IndexAny(text, ",:")]; reason == events.ReasonCollectorSilent {
		text = "silent: true"
	}
	k.set(func() { k.told = append(k.told, text) })
}

func (k *cage) Tell(_ graph.Ref, reason, _ string) {
	k.set(func() { k.told = append(k.told, fmt.Sprintf("silent: %t", reason != events.ReasonCollectorWorks)) })
}

func (k *cage) heard() []string {
	synctest.Wait()
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.told)
}

// gauge is the value of a metric, -1 if it has none.
func (k *cage) gauge(t *testing.T, name string) float64 {
	families, err := k.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	return -1
}

// writes are the writing requests.
func (k *cage) writes() (n int) {
	for _, a := range k.client.Actions() {
		if a.GetVerb() != "get" {
			n++
		}
	}
	return n
}

// The webhook lets foreground deletions through by what the canary says: one that was made in
// another mode is made again.
func TestCanarySaysWhetherWeirCollects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newCage(t, -1)
		for _, mode := range []struct {
			collects bool
			want     policies.Collector
		}{{false, policies.OthersCollect}, {true, policies.WeirCollects}, {true, policies.WeirCollects}, {false, policies.OthersCollect}, {false, policies.OthersCollect}} {
			k.Collects = mode.collects
			if err := k.Await(t.Context()); err != nil {
				t.Fatal(err)
			}
			cm, err := k.ConfigMaps.Get(t.Context(), v1beta1.CollectorCanary, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second) // a creationTimestamp has seconds
			if got, err := policies.CollectorBy(&cm.ObjectMeta, time.Now()); got != mode.want || err != nil {
				t.Errorf("collects %t: %v (%v), want %v", mode.collects, got, err, mode.want)
			}
			if said, ok := cm.Annotations[v1beta1.CanaryTimeAnnotation]; ok != mode.collects {
				t.Errorf("collects %t: it says that it must stand for %q", mode.collects, said)
			}
		}
		if k.made != 3 {
			t.Errorf("%d canaries were made, want one for each change", k.made)
		}
	})
}

// The webhook takes Weir for the only collector no sooner than Weir itself does, whatever was said
// of a canary that stands already.
func TestCanarySaysHowLongItMustStand(t *testing.T) {
	for name, c := range map[string]struct {
		says   string // of the canary that stands; "none": there is none
		age    time.Duration
		stands time.Duration
		writes []string
		takes  time.Duration
	}{
		"a new one":                           {"none", 0, time.Minute, []string{"create"}, time.Minute},
		"one of an earlier version":           {"", 15 * time.Second, time.Minute, []string{"delete", "create"}, time.Minute},
		"one that has to stand for less":      {"10s", 15 * time.Second, time.Minute, []string{"delete", "create"}, time.Minute},
		"one that has to stand for more":      {"10m0s", 2 * time.Minute, time.Minute, []string{"delete", "create"}, time.Minute},
		"one of which a user wrote something": {"soon", time.Hour, time.Minute, []string{"delete", "create"}, time.Minute},
		"one that says it":                    {"1m0s", time.Hour, time.Minute, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := newCage(t, -1)
				k.Collects, k.Stands = true, c.stands
				if c.says != "none" {
					old := k.collecting(c.age, c.says)
					if err := k.client.Tracker().Add(old); err != nil {
						t.Fatal(err)
					}
				}
				began, early := time.Now(), time.Duration(-1)
				for done := k.awaits(t); ; time.Sleep(100 * time.Millisecond) {
					synctest.Wait()
					if k.who(t) == policies.WeirCollects && early < 0 {
						early = time.Since(began)
					}
					if took, over := done(); over {
						if took != c.takes || early >= 0 && early < took {
							t.Errorf("Weir collects after %s, want %s, and the webhook knows it after %s", took, c.takes, early)
						}
						break
					}
				}
				time.Sleep(time.Second) // a creationTimestamp has seconds
				if who := k.who(t); who != policies.WeirCollects {
					t.Errorf("Weir collects, and the webhook says %v", who)
				}
				var writes []string
				for _, a := range k.client.Actions() {
					if a.GetVerb() != "get" {
						writes = append(writes, a.GetVerb())
					}
				}
				if diff := cmp.Diff(c.writes, writes); diff != "" {
					t.Errorf("writes (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// collecting is a canary of a Weir that collects; what it says of its time may be empty, for
// nothing.
func (k *cage) collecting(age time.Duration, says string) *corev1.ConfigMap {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: v1beta1.CollectorCanary, Namespace: "home", UID: "old", CreationTimestamp: metav1.NewTime(time.Now().Add(-age)),
		Labels: map[string]string{v1beta1.CollectsLabel: "true"}, OwnerReferences: []metav1.OwnerReference{Absent}}}
	if says != "" {
		cm.Annotations = map[string]string{v1beta1.CanaryTimeAnnotation: says}
	}
	return cm
}

// awaits begins to wait until no other collector works, and returns a function that tells whether
// that is over, and how long it took.
func (k *cage) awaits(t *testing.T) func() (time.Duration, bool) {
	began, ended := time.Now(), make(chan time.Duration, 1)
	go func() {
		if err := k.Await(t.Context()); err != nil {
			t.Error(err)
		}
		ended <- time.Since(began)
	}()
	return func() (time.Duration, bool) {
		select {
		case took := <-ended:
			return took, true
		default:
			return 0, false
		}
	}
}

// who is what the webhook concludes from the canary now.
func (k *cage) who(t *testing.T) policies.Collector {
	cm, err := k.client.Tracker().Get(configMaps, "home", v1beta1.CollectorCanary)
	if err != nil {
		t.Fatal(err)
	}
	who, err := policies.CollectorBy(&cm.(*corev1.ConfigMap).ObjectMeta, time.Now())
	if err != nil {
		t.Error(err)
	}
	return who
}

func TestNothingIsCollectedBeforeTheCanaryHasStood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newCage(t, -1)
		began := time.Now()
		if err := k.Await(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took != DefaultStands {
			t.Errorf("it stood for %s, want %s", took, DefaultStands)
		}
		if n := len(k.client.Actions()); k.writes() != 1 || n > 20 {
			t.Errorf("%d requests, of which %d write: want fewer than 20, and one", n, k.writes())
		}
		// Another replica that takes over finds it standing.
		began = time.Now()
		time.Sleep(time.Second) // a creationTimestamp has seconds
		if err := k.Await(t.Context()); err != nil || time.Since(began) != time.Second {
			t.Errorf("the next one waited for %s (%v), want none", time.Since(began)-time.Second, err)
		}
		if v := k.gauge(t, "weir_other_collector"); v != 0 {
			t.Errorf("weir_other_collector is %v", v)
		}
	})
}

func TestNothingIsCollectedBesideAnotherCollector(t *testing.T) {
	for name, takes := range map[string]time.Duration{"that is quick": time.Millisecond, "that is slow": DefaultStands - 10*time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := newCage(t, takes)
				done := make(chan error, 1)
				go func() { done <- k.Await(t.Context()) }()
				time.Sleep(10 * time.Minute)
				if told := k.heard(); !cmp.Equal(told, []string{"another garbage collector works in this cluster"}) {
					t.Errorf("told: %q", told)
				}
				if v := k.gauge(t, "weir_other_collector"); v != 1 || !k.Waits() {
					t.Errorf("weir_other_collector is %v, and it says that it waits: %t", v, k.Waits())
				}
				if rate := float64(len(k.client.Actions())) / 600; rate > 1 {
					t.Errorf("%.1f requests a second", rate)
				}
				select {
				case err := <-done:
					t.Fatalf("it went on beside the other: %v", err)
				default:
				}
				k.set(func() { k.deletes = -1 }) // it is switched off
				time.Sleep(7*DefaultStands + time.Second)
				synctest.Wait()
				select {
				case err := <-done:
					if err != nil || k.Waits() {
						t.Errorf("%v; it says that it waits: %t", err, k.Waits())
					}
				default:
					t.Error("the other is off, and it still waits")
				}
			})
		})
	}
}

func TestAProcessThatAPersonStartedGivesUpAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newCage(t, time.Millisecond)
		k.Once = true
		if err := k.Await(t.Context()); !errors.Is(err, ErrOther) {
			t.Errorf("it ended with %v", err)
		}
	})
}

func TestWhatCannotBeToldIsNoProof(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newCage(t, -1)
		k.forbidden = true
		done := make(chan error, 1)
		go func() { done <- k.Await(t.Context()) }()
		time.Sleep(time.Hour)
		if told := k.heard(); !cmp.Equal(told, []string{"cannot tell whether another garbage collector works"}) {
			t.Errorf("told: %q", told)
		}
		if diff := cmp.Diff(map[string]float64{"unknown": 1}, fixture.Counts(t, k.registry, "weir_other_collector")); diff != "" {
			t.Errorf("while it cannot be told (-want +got):\n%s", diff)
		}
		k.set(func() { k.forbidden = false })
		time.Sleep(time.Minute)
		if err := <-done; err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(map[string]float64{}, fixture.Counts(t, k.registry, "weir_other_collector")); diff != "" {
			t.Errorf("when it was told (-want +got):\n%s", diff)
		}
	})
}

func TestACanaryThatIsNoGarbageIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newCage(t, -1)
		old := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: v1beta1.CollectorCanary, Namespace: "home", UID: "old", CreationTimestamp: metav1.NewTime(time.Now().Add(-time.Hour))}}
		if err := k.client.Tracker().Add(old); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if err := k.Await(t.Context()); err != nil || time.Since(began) != DefaultStands {
			t.Errorf("waited for %s (%v), want %s: nobody deletes an object without owners", time.Since(began), err, DefaultStands)
		}
	})
}

func TestWeirEndsWhenAnotherCollectorBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newCage(t, -1)
		if err := k.Await(t.Context()); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- k.Watch(t.Context()) }()
		time.Sleep(time.Hour)
		k.remove(t) // by hand
		time.Sleep(time.Hour)
		if told := k.heard(); len(told) != 0 {
			t.Errorf("told after one was deleted by hand: %q", told)
		}
		if rate := float64(len(k.client.Actions())) / 7200; rate > 0.25 {
			t.Errorf("%.2f requests a second", rate)
		}
		k.set(func() { k.deletes = time.Second })
		k.remove(t)
		time.Sleep(calmLook + DefaultStands + time.Second)
		synctest.Wait()
		select {
		case err := <-done:
			if !errors.Is(err, ErrOther) {
				t.Errorf("it ended with %v", err)
			}
		default:
			t.Error("it works beside the other")
		}
	})
}

func TestItIsToldWhenTheBuiltinCollectorIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newCage(t, 300*time.Millisecond)
		ctx, end := context.WithCancel(t.Context())
		defer end()
		go k.Measure(ctx)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if alive, lag := k.gauge(t, "weir_builtin_collector_alive"), k.gauge(t, "weir_builtin_collector_lag_seconds"); alive != 1 || lag < 0.3 || lag > 0.75 {
			t.Errorf("alive %v, lag %v: want 1, and 0.3 at most doubled", alive, lag)
		}
		k.set(func() { k.deletes = -1 })
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if alive, lag := k.gauge(t, "weir_builtin_collector_alive"), k.gauge(t, "weir_builtin_collector_lag_seconds"); alive != 0 || lag < 500 {
			t.Errorf("alive %v, lag %v: want 0, and how long it stands", alive, lag)
		}
		if rate := float64(len(k.client.Actions())) / 1200; rate > 1 {
			t.Errorf("%.1f requests a second", rate)
		}
		k.set(func() { k.deletes = time.Millisecond })
		k.remove(t)
		time.Sleep(2 * time.Minute)
		if told := k.heard(); !cmp.Equal(told, []string{"silent: true", "silent: false"}) {
			t.Errorf("told: %q", told)
		}
		if alive := k.gauge(t, "weir_builtin_collector_alive"); alive != 1 {
			t.Errorf("alive %v", alive)
		}
	})
}

func TestOnlyTheCanaryIsLeftAlone(t *testing.T) {
	k := newCage(t, -1)
	for ref, want := range map[graph.Ref]bool{
		{Kind: kinds.ConfigMaps, Namespace: "home", Name: v1beta1.CollectorCanary}:                          true,
		{Kind: kinds.ConfigMaps, Namespace: "other", Name: v1beta1.CollectorCanary}:                         false,
		{Kind: kinds.ConfigMaps, Namespace: "home", Name: "other"}:                                          false,
		{Kind: schema.GroupResource{Resource: "secrets"}, Namespace: "home", Name: v1beta1.CollectorCanary}: false,
	} {
		if k.Is(ref) != want {
			t.Errorf("%v: %t", ref, !want)
		}
	}
}

// alter has a user put another owner on the canary.
func (k *cage) alter(t *testing.T) {
	cm, err := k.client.Tracker().Get(configMaps, "home", v1beta1.CollectorCanary)
	if err != nil {
		t.Error(err)
		return
	}
	changed := cm.(*corev1.ConfigMap).DeepCopy()
	changed.OwnerReferences = append(changed.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "lives", UID: "lives"})
	if err := k.client.Tracker().Update(configMaps, changed, "home"); err != nil {
		t.Error(err)
	}
}

// logged has the log be kept, and returns its lines until now.
func (k *cage) logged() func() []string {
	var lines []string
	k.Log = funcr.New(func(_, line string) { k.set(func() { lines = append(lines, line) }) }, funcr.Options{})
	return func() (out []string) { k.set(func() { out = lines }); return out }
}

// TestWhatIsChangedWhileItIsLookedAtTellsNothing: neither that another collector works, nor that
// none does.
func TestWhatIsChangedWhileItIsLookedAtTellsNothing(t *testing.T) {
	t.Run("before anything is collected", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			k := newCage(t, -1)
			began := time.Now()
			time.AfterFunc(DefaultStands-time.Millisecond, func() { k.alter(t) })
			if err := k.Await(t.Context()); err != nil || time.Since(began) != DefaultStands+failureRetry+DefaultStands {
				t.Errorf("%v, after %s, want one that was changed, and one that stood", err, time.Since(began))
			}
			if told := k.heard(); k.made != 2 || !cmp.Equal(told, []string{"cannot tell whether another garbage collector works"}) {
				t.Errorf("%d were made, told: %q", k.made, told)
			}
		})
	})
	t.Run("while Weir collects", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			k := newCage(t, -1)
			lines := k.logged()
			ctx, end := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- k.Watch(ctx) }()
			time.Sleep(time.Second)
			k.remove(t)
			time.Sleep(calmLook) // the next one is looked at
			k.alter(t)
			time.Sleep(DefaultStands)
			for _, line := range lines() {
				if strings.Contains(line, "no other garbage collector works") {
					t.Errorf("the log says %s", line)
				}
			}
			time.Sleep(time.Minute)
			if told := k.heard(); len(told) > 0 || k.made != 3 {
				t.Errorf("told %q, %d were made, want the third", told, k.made)
			}
			end()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	})
	t.Run("beside the built-in collector", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			k := newCage(t, -1)
			ctx, end := context.WithCancel(t.Context())
			defer end()
			go k.Measure(ctx)
			time.Sleep(time.Second)
			k.alter(t)
			time.Sleep(k.every())
			if alive := k.gauge(t, "weir_builtin_collector_alive"); alive != -1 || len(k.heard()) > 0 {
				t.Errorf("alive %v, told %q", alive, k.heard())
			}
		})
	})
}
