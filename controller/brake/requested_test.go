package brake

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/follow"
	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/policies/v1beta1"
)

var configMaps = schema.GroupResource{Resource: "configmaps"}

// mapRef is a ConfigMap that was deleted by request.
func mapRef(uid string) graph.Ref {
	return graph.Ref{Kind: configMaps, UID: types.UID(uid), Namespace: "shop", Name: uid}
}

// asking is a Brake with a graph that has some ConfigMaps, to be asked about deletions by request.
// Nothing that is inferred is limited.
func asking(uids ...string) *Brake {
	b := New(Options{Store: follow.NewStore(), Registry: prometheus.NewRegistry(), Log: logr.Discard()})
	b.Store.Apply(graph.Serving{Resources: []graph.Resource{{Version: "v1", Versions: []string{"v1"}, Kind: "ConfigMap", Resource: "configmaps", Namespaced: true, Listable: true, Collected: true, Deletable: true}}},
		graph.ListBegins{Kind: configMaps}, graph.ListEnds{Kind: configMaps})
	for _, uid := range uids {
		b.Store.Apply(graph.Observed{Object: &graph.Object{Kind: configMaps, UID: types.UID(uid), Namespace: "shop", Name: uid, ResourceVersion: "1"}})
	}
	return b
}

// foundOf returns what is held of ConfigMaps.
func foundOf(b *Brake) findings {
	return b.find(&record{cause: cause{kind: configMaps, requested: true}})
}

// TestADecisionIsAboutAsMuchAsWasShown: a deletion by request goes on with what a person saw, and
// with the limit more, which needs no decision.
func TestADecisionIsAboutAsMuchAsWasShown(t *testing.T) {
	type step struct {
		goes    int
		decides bool // a person then decides about what is shown
		held    bool
		shown   int
	}
	for name, steps := range map[string][]step{
		"as many as the limit":                   {{goes: 10}},
		"one more":                               {{goes: 11, held: true, shown: 11}},
		"nothing at all":                         {{goes: 0}},
		"it shrinks to the limit":                {{goes: 50, held: true, shown: 50}, {goes: 10}, {goes: 11, held: true, shown: 11}},
		"it grows a little, and looks the same":  {{goes: 50, held: true, shown: 50}, {goes: 60, held: true, shown: 50}, {goes: 55, held: true, shown: 50}},
		"it grows by more than the limit":        {{goes: 50, held: true, shown: 50}, {goes: 61, held: true, shown: 61}, {goes: 71, held: true, shown: 61}},
		"it grows little by little":              {{goes: 50, held: true, shown: 50}, {goes: 60, held: true, shown: 50}, {goes: 61, held: true, shown: 61}},
		"it shrinks, and looks the same":         {{goes: 50, held: true, shown: 50}, {goes: 11, held: true, shown: 50}},
		"decided about":                          {{goes: 50, decides: true, held: true, shown: 50}, {goes: 50}},
		"decided about, and a limit more":        {{goes: 50, decides: true, held: true, shown: 50}, {goes: 60}, {goes: 60}},
		"decided about, and more than that":      {{goes: 50, decides: true, held: true, shown: 50}, {goes: 61, held: true, shown: 61}},
		"decided about twice":                    {{goes: 50, decides: true, held: true, shown: 50}, {goes: 61, decides: true, held: true, shown: 61}, {goes: 71}, {goes: 72, held: true, shown: 72}},
		"decided about what was shown, not more": {{goes: 50, held: true, shown: 50}, {goes: 60, decides: true, held: true, shown: 50}, {goes: 60}, {goes: 61, held: true, shown: 61}},
	} {
		t.Run(name, func(t *testing.T) {
			b := asking("a")
			for i, s := range steps {
				if held := b.Requested(mapRef("a"), "p", 10, s.goes); held != s.held {
					t.Fatalf("step %d: held is %t", i, held)
				}
				f := foundOf(b)
				got := 0
				if len(f.items) > 0 {
					got = f.items[0].counted
				}
				if got != s.shown {
					t.Errorf("step %d: %d are shown, want %d", i, got, s.shown)
				}
				if s.decides {
					b.proceed([]item{{"a", got}, {"another", 1}})
				}
			}
		})
	}
}

// TestEachDeletionHasTheLimitOfItsPolicy: two policies limit deletions of the same kind.
func TestEachDeletionHasTheLimitOfItsPolicy(t *testing.T) {
	b := asking("a", "b", "c")
	if !b.Requested(mapRef("a"), "strict", 1, 2) || b.Requested(mapRef("b"), "mild", 100, 2) || !b.Requested(mapRef("c"), "mild", 100, 101) {
		t.Error("want those held that are past their own limit")
	}
	f := foundOf(b)
	if diff := cmp.Diff([]types.UID{"a", "c"}, uidsOf(f.items)); diff != "" {
		t.Errorf("held (-want +got):\n%s", diff)
	}
	if want := `DeletionPolicy "mild" allows 100 for each; DeletionPolicy "strict" allows 1 for each`; f.why != want {
		t.Errorf("why: %s, want %s", f.why, want)
	}
}

// TestWhatIsHeldByRequestEnds with the object, with its policy, and with a restore the decision
// about it.
func TestWhatIsHeldByRequestEnds(t *testing.T) {
	for name, c := range map[string]struct {
		then func(b *Brake)
		left int  // that are held
		goes bool // the object goes when it is asked about again
	}{
		"nothing happens":                   {func(*Brake) {}, 2, true},
		"it is gone":                        {func(b *Brake) { b.Store.Apply(graph.Gone{Kind: configMaps, UID: "a"}) }, 1, false},
		"no policy limits it any more":      {func(b *Brake) { b.Ended("a") }, 1, false},
		"it ended before the decision":      {func(b *Brake) { b.Ended("a"); b.proceed([]item{{"a", 20}}) }, 1, false},
		"another one ends":                  {func(b *Brake) { b.Ended("elsewhere") }, 2, true},
		"the cluster is restored meanwhile": {func(b *Brake) { b.Rewound("restored") }, 2, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := asking("a", "b")
			b.Requested(mapRef("a"), "p", 1, 20)
			b.Requested(mapRef("b"), "p", 1, 20)
			b.proceed([]item{{"a", 20}})
			c.then(b)
			if f := foundOf(b); len(f.items) != c.left {
				t.Errorf("%v are held", f.items)
			}
			if goes := !b.Requested(mapRef("a"), "p", 1, 20); goes != c.goes {
				t.Errorf("it goes: %t", goes)
			}
		})
	}
}

// TestNothingIsKnownOfRequestsWhileEverythingIsListed: what is held stays so, and is not said to be
// gone.
func TestNothingIsKnownOfRequestsWhileEverythingIsListed(t *testing.T) {
	b := asking("a")
	b.Requested(mapRef("a"), "p", 1, 20)
	b.Store.Apply(graph.Rewound{Reason: "restored"})
	r := &record{cause: cause{kind: configMaps, requested: true}, seen: foundOf(b)}
	if !r.seen.any() || r.condition().Message != "Weir is listing everything again. What is held is not known until then." {
		t.Errorf("%t, %s", r.seen.any(), r.condition().Message)
	}
	if len(b.roots) != 1 {
		t.Error("it was forgotten")
	}
}

// TestAHundredPoliciesAreNotAllNamed: the message has room for five, and samples for ten.
func TestAHundredPoliciesAreNotAllNamed(t *testing.T) {
	var uids []string
	for i := range 100 {
		uids = append(uids, fmt.Sprintf("m%02d", i))
	}
	b := asking(uids...)
	for i, uid := range uids {
		b.Requested(mapRef(uid), fmt.Sprintf("p%02d", i), 1, 20)
	}
	f := foundOf(b)
	if len(f.items) != 100 || f.objects() != 100 || len(f.samples) != mostSamples || f.samples[0].Name != "m00" {
		t.Errorf("%d are held, %d go, %d samples", len(f.items), f.objects(), len(f.samples))
	}
	if want := `DeletionPolicy "p04" allows 1 for each; and 95 more policies`; !strings.HasSuffix(f.why, want) || strings.Contains(f.why, "p05") {
		t.Errorf("why: %s", f.why)
	}
	r := &record{cause: cause{kind: configMaps, requested: true}, seen: f}
	r.seen.digest = "feed"
	st := r.status(&v1beta1.HeldCollection{}, time.Unix(0, 0))
	if st.Cause.Type != v1beta1.HeldForRequest || st.Held != 100 || len(st.Samples) != mostSamples || !strings.Contains(st.Conditions[0].Message, "100 requested deletions of configmaps, which would delete 100 objects in all") {
		t.Errorf("%+v", st)
	}
	if why := st.Samples[0].Why; why != `deleted by request: 20 objects would also be deleted, and DeletionPolicy "p00" allows 1` {
		t.Errorf("a sample: %s", why)
	}
}

// TestTheFirstOfAKindSaysSinceWhen and who keeps HeldCollections is woken by what begins to be
// held, once each.
func TestTheFirstOfAKindSaysSinceWhen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := asking("a", "b")
		began := time.Now()
		for _, uid := range []string{"a", "b", "a", "b"} {
			b.Requested(mapRef(uid), "p", 1, 20)
			<-time.After(time.Minute)
		}
		if h, is := b.heldLocked()[cause{kind: configMaps, requested: true}]; !is || !h.since.Equal(began) {
			t.Errorf("held since %s, want %s", h.since, began)
		}
		if len(b.begun) != 1 {
			t.Error("who keeps HeldCollections is not woken")
		}
		<-b.begun
		b.Requested(mapRef("a"), "p", 1, 20)
		if len(b.begun) != 0 {
			t.Error("woken by what was held already")
		}
	})
}
