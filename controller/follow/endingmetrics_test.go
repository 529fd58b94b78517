package follow

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/internal/testkit/fixture"
)

// endingObject is an owner that is being deleted with a finalizer of the garbage collector.
func endingObject(name, finalizer string) *graph.Object {
	return &graph.Object{Kind: fixture.ConfigMaps, UID: types.UID(name), Namespace: "shop", Name: name,
		ResourceVersion: "1", Finalizers: []string{finalizer}, Deleting: true}
}

func secretOf(name, owner string) *graph.Object {
	return &graph.Object{Kind: fixture.Secrets, UID: types.UID(name), Namespace: "shop", Name: name, ResourceVersion: "1",
		Owners: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner, UID: types.UID(owner),
			BlockOwnerDeletion: new(true)}}}
}

func TestMetricsTellWhatEndingOwnersWaitForAndForHowLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewStore()
		registry := prometheus.NewRegistry()
		registry.MustRegister(NewEndingMetrics(s))
		want := func(when string, owners, oldest map[string]float64) {
			t.Helper()
			if diff := cmp.Diff(owners, fixture.Counts(t, registry, "weir_ending_owners")); diff != "" {
				t.Errorf("%s: owners (-want +have):\n%s", when, diff)
			}
			if diff := cmp.Diff(oldest, fixture.Counts(t, registry, "weir_ending_owner_oldest_seconds")); diff != "" {
				t.Errorf("%s: oldest (-want +have):\n%s", when, diff)
			}
		}
		s.Apply(graph.Serving{Resources: fixture.TwoKinds})
		s.Apply(graph.ListBegins{Kind: fixture.ConfigMaps}, graph.ListEnds{Kind: fixture.ConfigMaps})
		none := map[string]float64{}
		want("at the beginning", none, none)

		s.Apply(graph.Observed{Object: endingObject("blocked", metav1.FinalizerDeleteDependents)},
			graph.Observed{Object: secretOf("leaf", "blocked")},
			graph.Observed{Object: endingObject("orphaning", metav1.FinalizerOrphanDependents)})
		want("a foreground owner with a dependent, an orphaning one without, Secrets not listed",
			map[string]float64{"Foreground secrets dependents": 1, "Orphan lists": 1}, none)

		<-time.After(time.Minute)
		s.Apply(graph.Observed{Object: endingObject("later", metav1.FinalizerDeleteDependents)})
		s.Apply(graph.ListBegins{Kind: fixture.Secrets}, graph.Observed{Object: secretOf("leaf", "blocked")},
			graph.ListEnds{Kind: fixture.Secrets})
		want("a minute later, all listed", map[string]float64{"Foreground secrets dependents": 1, "Orphan requests": 1,
			"Foreground requests": 1},
			map[string]float64{"Foreground": 60, "Orphan": 60})

		<-time.After(time.Minute)
		s.Apply(graph.Gone{Kind: fixture.ConfigMaps, UID: "blocked"}, graph.Gone{Kind: fixture.ConfigMaps, UID: "orphaning"})
		want("the two have gone", map[string]float64{"Foreground requests": 1}, map[string]float64{"Foreground": 60})

		s.Apply(graph.Gone{Kind: fixture.ConfigMaps, UID: "later"})
		want("all have gone", none, none)
	})
}

// TestOldestOfVeryManyEndingOwnersIsNotLostSightOf: a bounded number is told apart, and it is the
// same ones each time.
func TestOldestOfVeryManyEndingOwnersIsNotLostSightOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewStore()
		m := NewEndingMetrics(s)
		s.Apply(graph.Serving{Resources: fixture.TwoKinds},
			graph.Observed{Object: endingObject("oldest", metav1.FinalizerDeleteDependents)})
		m.look(time.Now())
		for round := range 5 {
			for i := range mostEnding {
				s.Apply(graph.Observed{Object: endingObject(fmt.Sprintf("more-%d-%d", round, i), metav1.FinalizerDeleteDependents)})
			}
			<-time.After(time.Minute)
			owners := m.look(time.Now())
			var oldest time.Duration
			for _, o := range owners {
				oldest = max(oldest, o.age)
			}
			if want := time.Duration(round+1) * time.Minute; len(owners) != mostEnding || len(m.since) != mostEnding ||
				oldest != want {
				t.Fatalf("round %d: %d owners, %d remembered, the oldest for %s, want %d and %s",
					round, len(owners), len(m.since), oldest, mostEnding, want)
			}
		}
	})
}
