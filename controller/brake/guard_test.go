package brake_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/brake"
	"github.com/weir-dev/weir/controller/follow"
	"github.com/weir-dev/weir/controller/graph"
)

// guarded is a guard on a graph with widgets, and pods that they own: pod0 by widget0, and so on.
type guarded struct {
	*testing.T
	*brake.Guard
	store *follow.Store
}

func newGuarded(t *testing.T, n int, l brake.Limits) *guarded {
	store := follow.NewStore()
	store.Apply(graph.Serving{Resources: []graph.Resource{resource("Widget", widgets), resource("Pod", pods)}},
		graph.ListBegins{Kind: widgets}, graph.ListEnds{Kind: widgets}, graph.ListBegins{Kind: pods}, graph.ListEnds{Kind: pods})
	for i := range n {
		store.Apply(graph.Observed{Object: &graph.Object{Kind: widgets, UID: uid("widget", i), Namespace: "x", Name: fmt.Sprint("widget", i), ResourceVersion: "1"}},
			graph.Observed{Object: pod(i, uid("widget", i))})
	}
	b := brake.New(brake.Options{Limits: l, Beside: true, Store: store, Registry: prometheus.NewRegistry(), Log: logr.Discard()})
	return &guarded{T: t, store: store, Guard: brake.NewGuard(b, func() error { return nil })}
}

func resource(kind string, gr schema.GroupResource) graph.Resource {
	return graph.Resource{Group: gr.Group, Version: "v1", Versions: []string{"v1"}, Kind: kind, Resource: gr.Resource, Namespaced: true, Listable: true, Collected: true, Deletable: true, Patchable: true}
}

// pod is one that a widget owns with a uid.
func pod(i int, owner types.UID) *graph.Object {
	return &graph.Object{Kind: pods, UID: uid("pod", i), Namespace: "x", Name: fmt.Sprint("pod", i), ResourceVersion: "1",
		Owners: []metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Widget", Name: fmt.Sprint("widget", i), UID: owner}}}
}

func uid(of string, i int) types.UID { return types.UID(fmt.Sprint(of, i)) }

// lets asks as the other collector does, which comes again later and later, and tells whether an
// object may be deleted in the end.
func (g *guarded) lets(uid types.UID) bool {
	for pause := 5 * time.Millisecond; pause < 10*time.Second; pause *= 2 {
		if g.Holds(context.Background(), uid) == "" {
			return true
		}
		time.Sleep(pause)
	}
	return false
}

func TestGuardAllowsWhatAUserAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuarded(t, 1, small)
		go func() {
			time.Sleep(20 * time.Millisecond) // the watch is a little behind the other collector
			g.store.Apply(graph.Gone{Kind: widgets, UID: "widget0"})
		}()
		if why := g.Holds(t.Context(), "pod0"); why != "" {
			t.Errorf("held at the first try: %s", why)
		}
		synctest.Wait()
	})
}

func TestGuardHoldsPastTheLimitAndNothingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuarded(t, 31, small)
		for i := range 30 {
			g.store.Apply(graph.Observed{Object: pod(i, uid("nobody", i))}) // owners that never were
		}
		g.store.Apply(graph.Gone{Kind: widgets, UID: "widget30"})
		gone := 0
		for i := range 30 {
			if g.lets(uid("pod", i)) {
				gone++
				g.store.Apply(graph.Gone{Kind: pods, UID: uid("pod", i)})
			}
		}
		if gone == 0 || gone > small.Most {
			t.Errorf("%d of 30 were let through, and %d are the limit", gone, small.Most)
		}
		if why := g.Holds(t.Context(), "pod29"); !strings.Contains(why, "kubectl get held widgets.example.com") {
			t.Errorf("a held object is refused with %q", why)
		}
		if why := g.Holds(t.Context(), "pod30"); why != "" {
			t.Errorf("an object whose owner was deleted is held: %s", why)
		}
	})
}

// TestGuardCountsWhatTheOtherCollectorIsWrongAbout: it wants to delete objects whose owners are
// there, as after a restore, or a lookup that an API answered with 404 which had lost its kind.
// They are many, so none goes; few go.
func TestGuardCountsWhatTheOtherCollectorIsWrongAbout(t *testing.T) {
	for _, c := range []struct{ asked, goes int }{{30, 0}, {small.Most, small.Most}} {
		synctest.Test(t, func(t *testing.T) {
			g := newGuarded(t, 30, small)
			left := map[int]bool{}
			for i := range c.asked {
				left[i] = true
			}
			for pause := 5 * time.Millisecond; pause < 30*time.Second; pause *= 2 {
				for i := range left {
					if g.Holds(t.Context(), uid("pod", i)) == "" {
						delete(left, i)
						g.store.Apply(graph.Gone{Kind: pods, UID: uid("pod", i)})
					}
				}
				time.Sleep(pause)
			}
			if gone := c.asked - len(left); gone != c.goes {
				t.Errorf("%d of %d were let through, want %d", gone, c.asked, c.goes)
			}
			for i := range left { // a client does delete their owners
				g.store.Apply(graph.Gone{Kind: widgets, UID: uid("widget", i)})
				if why := g.Holds(t.Context(), uid("pod", i)); why != "" {
					t.Fatalf("held although the delete of its owner was seen: %s", why)
				}
			}
		})
	}
}

// TestGuardForgetsItsDoubts: while the watch was behind, much was asked about whose owners a client
// had deleted. That does not count any more when it has come.
func TestGuardForgetsItsDoubts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuarded(t, 30, small)
		for i := range 29 {
			if g.Holds(t.Context(), uid("pod", i)) == "" {
				t.Fatal("let through while its owner is there")
			}
		}
		for i := range 29 {
			g.store.Apply(graph.Gone{Kind: widgets, UID: uid("widget", i)})
			if why := g.Holds(t.Context(), uid("pod", i)); why != "" {
				t.Fatalf("held: %s", why)
			}
		}
		if !g.lets("pod29") {
			t.Error("one that nothing else is doubted with is held")
		}
	})
}

// TestGuardLetsThroughWhatItCannotJudge: an object of a kind that is not followed is held for a
// moment, and one without owners as well.
func TestGuardLetsThroughWhatItCannotJudge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuarded(t, 1, small)
		for _, uid := range []types.UID{"elsewhere", "widget0"} {
			if why := g.Holds(t.Context(), uid); why == "" {
				t.Errorf("%s was let through at once: the graph may be behind", uid)
			}
			if !g.lets(uid) {
				t.Errorf("%s is held for good", uid)
			}
		}
	})
}

func TestGuardHoldsWhileNothingIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuarded(t, 1, small)
		g.store.Apply(graph.Gone{Kind: widgets, UID: "widget0"})
		g.store.Apply(graph.Rewound{Reason: "restored"})
		if g.lets("pod0") {
			t.Error("let through while everything is listed again")
		}
	})
}

var small = brake.Limits{Objects: 10, Share: 0.1, Most: 10}

func TestLedgerHeedsHeldCollections(t *testing.T) {
	b := newBench(t, small)
	if !b.ask(action(pods, widgets, "1", false), nil) {
		t.Fatal("the first is held")
	}
	b.Heed(b.now, map[schema.GroupResource]time.Time{widgets: b.now})
	if b.ask(action(pods, widgets, "2", false), nil) {
		t.Error("not held, although a HeldCollection says so")
	}
	b.Heed(b.now, nil)
	b.now = b.now.Add(15 * time.Second)
	b.Heed(b.now, nil)
	if !b.ask(action(pods, widgets, "2", false), nil) {
		t.Error("held, although no HeldCollection says so any more")
	}
	// What only this process holds stays held until the leader has had time.
	if b.ask(action(pods, gadgets, "3", false), map[schema.GroupResource]int{secrets: 1000}) {
		t.Fatal("not held, although it is past the limit")
	}
	b.Heed(b.now, nil)
	if b.ask(action(pods, gadgets, "4", false), nil) {
		t.Error("not held any more before the leader could say so")
	}
	b.now = b.now.Add(time.Minute)
	b.Heed(b.now, nil)
	if !b.ask(action(pods, gadgets, "4", false), nil) {
		t.Error("held for good by this process alone")
	}
}

// TestLedgerCountsOnWhenItsOwnHoldEnds: no leader held it, and no person decided. Within the hour
// no more than the limit goes.
func TestLedgerCountsOnWhenItsOwnHoldEnds(t *testing.T) {
	b := newBench(t, small)
	went := 0
	for i := range 10 {
		went += b.many(widgets, fmt.Sprint(i), 20)
		b.now = b.now.Add(2 * time.Minute)
		b.Heed(b.now, nil)
	}
	if went != small.Most {
		t.Errorf("%d went in twenty minutes, want %d", went, small.Most)
	}
}

// TestLedgerBesideHoldsWhatItAllowed: the other collector may not have deleted it yet, and is
// refused from then on.
func TestLedgerBesideHoldsWhatItAllowed(t *testing.T) {
	for _, beside := range []bool{false, true} {
		b := newBench(t, small)
		if beside {
			b.Ledger = brake.NewLedger(small, true)
		}
		first := action(pods, widgets, "1", false)
		if !b.ask(first, nil) {
			t.Fatal("the first is held")
		}
		if b.ask(action(pods, widgets, "2", false), map[schema.GroupResource]int{secrets: 1000}) {
			t.Fatal("the second is not held")
		}
		if waits := b.Waits(first.Object, first.Inferred); waits != beside {
			t.Errorf("beside another collector %t: the first waits for a decision: %t", beside, waits)
		}
	}
}

// TestLedgerBesideLetsFollowNoMoreThanWasCounted: it is not told what the other collector has
// deleted, which asks again and again. What follows is counted when it is let through, once each;
// what comes later is news.
func TestLedgerBesideLetsFollowNoMoreThanWasCounted(t *testing.T) {
	b := newBench(t, small)
	b.Ledger = brake.NewLedger(small, true)
	if !b.ask(action(pods, widgets, "1", false), map[schema.GroupResource]int{secrets: 2}) {
		t.Fatal("the first is held")
	}
	for _, s := range []struct {
		uid  string
		goes bool
	}{{"a", true}, {"a", true}, {"a", true}, {"b", true}, {"a", true}} {
		if b.ask(action(secrets, widgets, s.uid, true), nil) != s.goes {
			t.Errorf("%s goes: %t", s.uid, !s.goes)
		}
	}
	went := 0
	for i := range 2000 {
		if b.ask(action(secrets, widgets, fmt.Sprint("later", i), true), nil) {
			went++
		}
	}
	if went >= 1000 {
		t.Errorf("%d went that nobody had counted", went)
	}
}
