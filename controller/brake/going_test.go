package brake_test

import (
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/brake"
	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/kinds"
	"github.com/weir-dev/weir/policies/v1beta1"
)

// leads asks about an object as a worker of the leader does, until it need not ask again, and tells
// whether the object may be deleted.
func (g *guarded) leads(uid types.UID) bool {
	for {
		yes, again := g.Allows(g.store.Decide(uid))
		if again == 0 {
			return yes
		}
		<-time.After(again)
	}
}

// goes has the watch show that an object is gone.
func (g *guarded) goes(uid types.UID) {
	g.Going(uid)
	g.store.Apply(graph.Gone{Kind: pods, UID: uid})
}

// orphan has the owners of pods, from one to another, not be found.
func (g *guarded) orphan(from, to int) {
	for i := from; i < to; i++ {
		g.store.Apply(graph.NotFound{Kind: widgets, UID: uid("widget", i), History: g.store.History()})
	}
}

// TestWhatAnotherProcessLetCounts: the webhook lets the other collector delete up to the limit,
// faster than the leader asks about these objects, and holds the rest. The leader comes to hold it,
// too: only a hold of the leader's is told to users, and can be decided about.
func TestWhatAnotherProcessLetCounts(t *testing.T) {
	for name, early := range map[string]bool{"asked about the rest when the others are gone": false, "asked about the rest before": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGuarded(t, 30, small)
				rest := uid("pod", small.Most)
				if early {
					g.orphan(small.Most, small.Most+1)
					if !g.leads(rest) {
						t.Fatal("one object is held")
					}
				}
				for i := range small.Most { // one after the other: nothing is seen to come
					g.orphan(i, i+1)
					g.goes(uid("pod", i))
				}
				if !early {
					g.orphan(small.Most, small.Most+1)
				}
				if g.leads(rest) {
					t.Errorf("the leader lets one more object go than %d, which went already", small.Most)
				}
			})
		})
	}
}

// TestNothingIsHeldWhenAllIsGone: where more went than the limit, be it by two replicas or by hand,
// and nothing is left to hold, what comes next is held.
func TestNothingIsHeldWhenAllIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuarded(t, 30, small)
		for i := range 2 * small.Most {
			g.orphan(i, i+1)
			g.goes(uid("pod", i))
		}
		if held := g.HeldKinds(); held != 0 {
			t.Errorf("%d kinds of owners are held", held)
		}
		g.orphan(25, 26)
		if g.leads(uid("pod", 25)) {
			t.Errorf("one more object goes than %d, of which twice as many went", small.Most)
		}
	})
}

// TestWhatGoesCountsOnce: what this process has let through counts then, and not once more when it
// is gone; what a client asked for does not.
func TestWhatGoesCountsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuarded(t, 30, small)
		for i := 20; i < 30; i++ {
			g.store.Apply(graph.Gone{Kind: widgets, UID: uid("widget", i)})
			g.goes(uid("pod", i))
		}
		for i := range small.Most {
			g.orphan(i, i+1)
			if !g.leads(uid("pod", i)) {
				t.Fatalf("object %d of %d is held", i, small.Most)
			}
			g.goes(uid("pod", i))
		}
	})
}

// TestWhatFollowsCountsOnce: what depends on an object that was let through was counted with it,
// and is not asked about here.
func TestWhatFollowsCountsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuarded(t, 30, small)
		const followers = 5
		for i := 1; i <= followers; i++ {
			o := pod(i, uid("pod", 0))
			o.Owners[0].APIVersion, o.Owners[0].Kind, o.Owners[0].Name = "v1", "Pod", "pod0"
			g.store.Apply(graph.Observed{Object: o})
		}
		g.orphan(0, 1)
		if !g.leads("pod0") {
			t.Fatal("six objects of ten are held")
		}
		for i := range followers + 1 {
			g.goes(uid("pod", i))
		}
		for i := followers + 1; i < small.Most; i++ {
			g.orphan(i, i+1)
			if !g.leads(uid("pod", i)) {
				t.Fatalf("object %d of %d is held", i, small.Most)
			}
			g.goes(uid("pod", i))
		}
		g.orphan(small.Most, small.Most+1)
		if g.leads(uid("pod", small.Most)) {
			t.Errorf("more than %d objects go", small.Most)
		}
	})
}

// TestTheCanaryIsNotCounted: Weir plants one a minute, whose owner never existed.
func TestTheCanaryIsNotCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuarded(t, 30, small)
		g.store.Apply(graph.Serving{Resources: []graph.Resource{resource("Widget", widgets), resource("Pod", pods), resource("ConfigMap", kinds.ConfigMaps)}},
			graph.ListBegins{Kind: kinds.ConfigMaps}, graph.ListEnds{Kind: kinds.ConfigMaps})
		g.orphan(0, 1)
		for i := range 20 {
			canary := pod(0, uid("widget", 0))
			canary.Kind, canary.Name, canary.UID = kinds.ConfigMaps, v1beta1.CollectorCanary, uid("canary", i)
			g.store.Apply(graph.Observed{Object: canary})
			g.Going(canary.UID)
			g.store.Apply(graph.Gone{Kind: kinds.ConfigMaps, UID: canary.UID})
		}
		if !g.leads("pod0") {
			t.Error("one object is held")
		}
	})
}

// TestADecisionIsNotVoidedByWhatGoes: a person decides that more goes than the limit, and when some
// have gone that counts for the others still.
func TestADecisionIsNotVoidedByWhatGoes(t *testing.T) {
	b := newBench(t, small)
	b.Ledger = brake.NewLedger(small, true)
	b.Hold(b.now, widgets, b.now, "test")
	uids := make([]types.UID, 2*small.Most)
	for i := range uids {
		uids[i] = uid("pod", i)
	}
	b.Decided(widgets, uids)
	for _, u := range uids[1:] {
		b.Went(b.now, action(pods, widgets, string(u), false), brake.Load{Weight: []graph.Counted{{Kind: pods, Count: 1}}, Sizes: b.sizes})
	}
	if !b.Proceeds(graph.Ref{Kind: pods, UID: uids[0]}, graph.Inference{Owners: widgets}) {
		t.Error("what a person has decided does not count any more")
	}
}

// TestWhatGoesBesideItsOwnerIsNotCounted: clients delete what has owners, too, and a restored
// cluster lacks what was there.
func TestWhatGoesBesideItsOwnerIsNotCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuarded(t, 30, small)
		for i := range 20 {
			g.goes(uid("pod", i))
		}
		g.orphan(20, 21)
		if !g.leads(uid("pod", 20)) {
			t.Error("one object is held")
		}
	})
}
