package kinds

import (
	"fmt"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A cluster in which definitions come and go must not have counters grow for ever: whoever makes a
// thousand kinds would fill the memory of Weir, and of Prometheus.
func TestCountersHaveLabelsForABoundedNumberOfKinds(t *testing.T) {
	var labels Labels
	kind := func(i int) schema.GroupResource {
		return schema.GroupResource{Group: "example.com", Resource: fmt.Sprint("r", i)}
	}
	for i := range MostLabels {
		if got := labels.Of(kind(i)); got != kind(i) {
			t.Fatalf("kind %d is counted as %s", i, got)
		}
	}
	var all sync.WaitGroup
	for range 4 { // as counters ask: many at the same time
		all.Go(func() {
			for i := range 2 * MostLabels {
				want := kind(i)
				if i >= MostLabels {
					want = schema.GroupResource{Resource: "other"}
				}
				if got := labels.Of(kind(i)); got != want {
					t.Errorf("kind %d is counted as %s, want %s", i, got, want)
				}
			}
		})
	}
	all.Wait()
}
