package beside

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/kinds"
)

// estate is Spaces in a cluster of a test's own.
type estate struct {
	*testing.T
	*Spaces
	registry *prometheus.Registry

	mu      sync.Mutex
	there   map[string]*corev1.Namespace
	content map[string]int // ConfigMaps in it
	pods    map[string]int
	kinds   []graph.KindStats
	reads   int
	told    []string
}

func newEstate(t *testing.T) *estate {
	e := &estate{T: t, registry: prometheus.NewRegistry(), there: map[string]*corev1.Namespace{}, content: map[string]int{}, pods: map[string]int{},
		kinds: []graph.KindStats{{Resource: graph.Resource{Resource: "configmaps", Namespaced: true, Collected: true, Deletable: true}, Served: true, State: graph.Synced}}}
	e.Spaces = NewSpaces(SpacesOptions{
		Namespaces: e, Content: e.inventory, Kinds: func() []graph.KindStats { e.mu.Lock(); defer e.mu.Unlock(); return e.kinds },
		Now: time.Now, Stands: DefaultStands, Reporter: e, Registry: e.registry, Log: logr.Discard(),
	})
	return e
}

func (e *estate) Get(_ context.Context, name string, _ metav1.GetOptions) (*corev1.Namespace, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.reads++
	if ns := e.there[name]; ns != nil {
		return ns.DeepCopy(), nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, name)
}

func (e *estate) inventory(name string) (inv graph.Inventory) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if n := e.content[name]; n > 0 {
		inv.Kinds = append(inv.Kinds, graph.KindCount{Kind: kinds.ConfigMaps, Total: n})
	}
	if n := e.pods[name]; n > 0 {
		inv.Kinds = append(inv.Kinds, graph.KindCount{Kind: podKind, Total: n})
	}
	return inv
}

func (e *estate) NamespaceControllerSilent(ns graph.Ref, _ bool, text string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	words, _, _ := strings.Cut(text, ":")
	e.told = append(e.told, ns.Name+": "+words)
}

// deletes has a user delete a namespace with so many objects in it.
func (e *estate) deletes(name string, objects int) {
	now := metav1.Now()
	e.mu.Lock()
	e.there[name] = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), DeletionTimestamp: &now},
		Spec: corev1.NamespaceSpec{Finalizers: []corev1.FinalizerName{corev1.FinalizerKubernetes}}}
	e.content[name] = objects
	e.mu.Unlock()
	e.Deleting(name)
}

// says has the namespace controller write its conditions, of which some are true.
func (e *estate) says(name string, wrong ...corev1.NamespaceConditionType) {
	e.mu.Lock()
	ns := e.there[name]
	ns.Status.Conditions = nil
	for _, of := range kinds.OfNamespaceController {
		c := corev1.NamespaceCondition{Type: of, Status: corev1.ConditionFalse}
		if slices.Contains(wrong, of) {
			c.Status = corev1.ConditionTrue
		}
		ns.Status.Conditions = append(ns.Status.Conditions, c)
	}
	e.mu.Unlock()
	e.Deleting(name)
}

func (e *estate) holds(name string, objects, pods int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.content[name], e.pods[name] = objects, pods
}

// letsGo has the namespace controller take its finalizer off; others still hold the namespace.
func (e *estate) letsGo(name string) {
	e.mu.Lock()
	e.there[name].Spec.Finalizers = nil
	e.mu.Unlock()
	e.Deleting(name)
}

func (e *estate) went(name string) {
	e.mu.Lock()
	delete(e.there, name)
	e.mu.Unlock()
	e.Gone(name)
}

// value is that of a gauge, -1 if it has none, or the sum of a histogram's step.
func (e *estate) value(name, step string) float64 {
	families, err := e.registry.Gather()
	if err != nil {
		e.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			if step == "" {
				return m.GetGauge().GetValue()
			}
			if m.GetLabel()[0].GetValue() == step {
				return m.GetHistogram().GetSampleSum()
			}
		}
	}
	return -1
}

func TestWhatTheNamespaceControllerTakesIsObserved(t *testing.T) {
	const day = 24 * time.Hour
	for name, c := range map[string]struct {
		does       func(*estate)
		begin, end float64 // seconds; -1: nothing
		alive      float64
		oldest     float64
	}{
		"nothing is deleted": {func(*estate) {}, -1, -1, -1, -1},
		"an empty namespace goes in one pass": {func(e *estate) {
			e.deletes("shop", 0)
			time.Sleep(5 * time.Second)
			e.went("shop")
		}, 5, -1, 1, 0},
		"one that is emptied": {func(e *estate) {
			e.deletes("shop", 3)
			time.Sleep(5 * time.Second)
			e.says("shop", corev1.NamespaceContentRemaining)
			time.Sleep(20 * time.Second)
			e.holds("shop", 0, 0)
			time.Sleep(8 * time.Second)
			e.went("shop")
		}, 5, 7, 1, 0}, // the end is seen within a second
		"one that others hold": {func(e *estate) {
			e.deletes("shop", 0)
			time.Sleep(5 * time.Second)
			e.letsGo("shop")
			time.Sleep(day)
		}, 5, -1, 1, 0},
		"one with content that stays": {func(e *estate) {
			e.deletes("shop", 3)
			time.Sleep(5 * time.Second)
			e.says("shop", corev1.NamespaceContentRemaining)
			time.Sleep(day)
		}, 5, -1, 1, 0},
		"one that the controller never begins with": {func(e *estate) {
			e.deletes("shop", 3)
			time.Sleep(2 * time.Minute)
		}, -1, -1, 0, 120},
		"one that is written by others": {func(e *estate) {
			e.deletes("shop", 3)
			for range 120 {
				e.Deleting("shop")
				time.Sleep(time.Second)
			}
		}, -1, -1, 0, 120},
		"one that is empty, and stays": {func(e *estate) {
			e.deletes("shop", 3)
			time.Sleep(5 * time.Second)
			e.says("shop", corev1.NamespaceContentRemaining)
			time.Sleep(time.Second)
			e.holds("shop", 0, 0)
			time.Sleep(2 * time.Minute)
		}, 5, -1, 0, 120},
		"one that is empty, and for which the controller cannot tell": {func(e *estate) {
			e.deletes("shop", 0)
			time.Sleep(5 * time.Second)
			e.says("shop", corev1.NamespaceDeletionDiscoveryFailure)
			time.Sleep(day)
		}, 5, -1, 1, 0},
		"one in which pods were, for which the controller waits": {func(e *estate) {
			e.deletes("shop", 0)
			e.holds("shop", 0, 1)
			time.Sleep(5 * time.Second)
			e.says("shop", corev1.NamespaceContentRemaining)
			time.Sleep(time.Second)
			e.holds("shop", 0, 0)
			time.Sleep(10 * time.Minute)
		}, 5, -1, 1, 600},
		"one of which not all is known": {func(e *estate) {
			e.mu.Lock()
			e.kinds = append(e.kinds, graph.KindStats{Resource: graph.Resource{Group: "x.io", Resource: "widgets", Namespaced: true, Collected: true, Deletable: true}, Served: true, State: graph.Forbidden})
			e.mu.Unlock()
			e.deletes("shop", 0)
			time.Sleep(5 * time.Second)
			e.says("shop", corev1.NamespaceContentRemaining)
			time.Sleep(day)
		}, 5, -1, 1, 0},
		"one waits, and others go": {func(e *estate) {
			e.deletes("shop", 3)
			for range 10 {
				time.Sleep(30 * time.Second)
				e.deletes("other", 0)
				e.went("other")
			}
		}, 0, -1, 1, 300},
		"the API server's history goes back": {func(e *estate) {
			e.deletes("shop", 3)
			time.Sleep(30 * time.Second)
			e.Rewound()
			time.Sleep(5 * time.Second)
		}, -1, -1, -1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newEstate(t)
				ctx, end := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() { defer close(done); e.Spaces.Run(ctx) }()
				synctest.Wait()
				time.Sleep(10*time.Second + time.Millisecond) // not in the moment of a look
				c.does(e)
				time.Sleep(time.Second)
				synctest.Wait()
				got := []float64{e.value("weir_builtin_namespace_controller_lag_seconds", "begin"), e.value("weir_builtin_namespace_controller_lag_seconds", "end"),
					e.value("weir_builtin_namespace_controller_alive", ""), e.value("weir_builtin_namespace_controller_oldest_seconds", "")}
				for i, want := range []float64{c.begin, c.end, c.alive, c.oldest} {
					if got[i] < want-0.1 || got[i] > want+2.1 {
						t.Errorf("begin, end, alive, oldest: %.2f, want %v", got, []float64{c.begin, c.end, c.alive, c.oldest})
						break
					}
				}
				end()
				<-done
				if alive := e.value("weir_builtin_namespace_controller_alive", ""); alive != -1 {
					t.Errorf("alive %v is shown by one that does not lead", alive)
				}
			})
		})
	}
}

func TestItIsToldWhenTheNamespaceControllerIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEstate(t)
		e.deletes("old", 3) // before this process led
		time.Sleep(24 * time.Hour)
		ctx, end := context.WithCancel(t.Context())
		defer end()
		go e.Spaces.Run(ctx)
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if oldest, alive := e.value("weir_builtin_namespace_controller_oldest_seconds", ""), e.value("weir_builtin_namespace_controller_alive", ""); oldest < 86400 || alive != -1 {
			t.Errorf("the oldest waits for %v, and alive is %v, want a day, and nothing before a minute", oldest, alive)
		}
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		e.mu.Lock()
		if e.reads > 60 {
			t.Errorf("%d reads of a namespace that stands for two days", e.reads)
		}
		e.mu.Unlock()
		e.deletes("new", 0)
		time.Sleep(time.Second)
		e.went("new")
		time.Sleep(time.Second)
		synctest.Wait()
		e.mu.Lock()
		defer e.mu.Unlock()
		if want := []string{"old: the built-in namespace controller does not work", "old: the built-in namespace controller works again"}; !cmp.Equal(e.told, want) {
			t.Errorf("told %q, want %q", e.told, want)
		}
	})
}

// TestNamespaceThatCouldNotBeReadIsReadAgain: what it says now may be what the controller is excused by no more.
func TestNamespaceThatCouldNotBeReadIsReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEstate(t)
		broken := false
		e.Namespaces = reader(func(ctx context.Context, name string) (*corev1.Namespace, error) {
			ns, err := e.Get(ctx, name, metav1.GetOptions{})
			e.mu.Lock()
			defer e.mu.Unlock()
			if broken {
				return nil, apierrors.NewServiceUnavailable("etcd")
			}
			return ns, err
		})
		ctx, end := context.WithCancel(t.Context())
		defer end()
		go e.Spaces.Run(ctx)
		time.Sleep(1500 * time.Millisecond)
		e.deletes("shop", 0)
		time.Sleep(5 * time.Second)
		e.says("shop", corev1.NamespaceDeletionDiscoveryFailure)
		time.Sleep(time.Minute)
		if oldest := e.value("weir_builtin_namespace_controller_oldest_seconds", ""); oldest != 0 {
			t.Errorf("it cannot tell, and is waited for since %v s", oldest)
		}
		e.mu.Lock()
		broken, e.reads = true, 0
		e.mu.Unlock()
		e.says("shop") // and then it ends
		time.Sleep(time.Minute)
		e.mu.Lock()
		if e.reads < 2 || e.reads > 13 {
			t.Errorf("%d reads in a minute, want one each %s at most", e.reads, readAfter)
		}
		broken = false
		e.mu.Unlock()
		time.Sleep(time.Minute)
		if oldest := e.value("weir_builtin_namespace_controller_oldest_seconds", ""); oldest < 60 {
			t.Errorf("it is waited for since %v s, and nothing excuses it", oldest)
		}
	})
}

// reader reads namespaces.
type reader func(ctx context.Context, name string) (*corev1.Namespace, error)

func (f reader) Get(ctx context.Context, name string, _ metav1.GetOptions) (*corev1.Namespace, error) {
	return f(ctx, name)
}
