package follow

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/internal/testkit/fixture"
)

// endingObject is an owner that is being deleted with a finalizer of the garbage collector.
func endingObject(name, finalizer string) *graph.Object {
	return &graph.Object{Kind: fixture.ConfigMaps, UID: types.UID(name), Namespace: "shop", Name: name,
		ResourceVersion: "1", Finalizers: []string{finalizer}, Deleting: true}
}

func TestMetricsTellForHowLongOwnersHaveBeenEnding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewStore()
		registry := prometheus.NewRegistry()
		registry.MustRegister(NewGraphMetrics(s, func(schema.GroupResource) bool { return true }))
		want := func(when string, owners float64, oldest map[string]float64) {
			t.Helper()
			if have := fixture.Counts(t, registry, "weir_graph_ending_owners")[""]; have != owners {
				t.Errorf("%s: %v owners, want %v", when, have, owners)
			}
			if diff := cmp.Diff(oldest, fixture.Counts(t, registry, "weir_ending_owner_oldest_seconds")); diff != "" {
				t.Errorf("%s: oldest (-want +have):\n%s", when, diff)
			}
		}
		s.Apply(graph.Serving{Resources: fixture.TwoKinds})
		none := map[string]float64{}
		want("at the beginning", 0, none)

		s.Apply(graph.Observed{Object: endingObject("foreground", metav1.FinalizerDeleteDependents)},
			graph.Observed{Object: endingObject("orphaning", metav1.FinalizerOrphanDependents)})
		want("two are deleted", 2, none)

		<-time.After(time.Minute)
		s.Apply(graph.Observed{Object: endingObject("later", metav1.FinalizerDeleteDependents)})
		want("a minute later, with a third", 3, map[string]float64{"Foreground": 60, "Orphan": 60})

		<-time.After(time.Minute)
		s.Apply(graph.Gone{Kind: fixture.ConfigMaps, UID: "foreground"}, graph.Gone{Kind: fixture.ConfigMaps, UID: "orphaning"})
		want("the two have gone", 1, map[string]float64{"Foreground": 60})

		s.Apply(graph.Gone{Kind: fixture.ConfigMaps, UID: "later"})
		want("all have gone", 0, none)
	})
}

// TestOldestOfVeryManyEndingOwnersIsNotLostSightOf: a bounded number is told apart, and it is the
// same ones each time.
func TestOldestOfVeryManyEndingOwnersIsNotLostSightOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewStore()
		m := NewGraphMetrics(s, nil)
		s.Apply(graph.Serving{Resources: fixture.TwoKinds},
			graph.Observed{Object: endingObject("oldest", metav1.FinalizerDeleteDependents)})
		m.ages(time.Now())
		for round := range 5 {
			for i := range mostEnding {
				s.Apply(graph.Observed{Object: endingObject(fmt.Sprintf("more-%d-%d", round, i), metav1.FinalizerDeleteDependents)})
			}
			<-time.After(time.Minute)
			oldest := m.ages(time.Now())[metav1.DeletePropagationForeground]
			if want := time.Duration(round+1) * time.Minute; len(m.since) != mostEnding || oldest != want {
				t.Fatalf("round %d: %d remembered, the oldest for %s, want %d and %s",
					round, len(m.since), oldest, mostEnding, want)
			}
		}
	})
}
