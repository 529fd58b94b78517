package namespaces

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/controller/graph"
)

// TestARefusalCountsForAWhileAndForTheObjectAsItWas: for longer each time, but never so long that a
// person waits for it who has let the object go.
func TestARefusalCountsForAWhileAndForTheObjectAsItWas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, pod := refused{}, graph.Ref{UID: "one", ResourceVersion: "7"}
		if _, still := r.still(pod); still {
			t.Error("it was never refused")
		}
		var pauses []time.Duration
		for range 5 {
			r.note(pod, "not today")
			began := time.Now()
			for {
				why, still := r.still(pod)
				if !still {
					break
				}
				if why != "not today" {
					t.Fatalf("it is refused because of %q", why)
				}
				<-time.After(100 * time.Millisecond)
			}
			pauses = append(pauses, time.Since(began))
		}
		if diff := cmp.Diff([]time.Duration{1 * time.Second, 2 * time.Second, 4 * time.Second, 5 * time.Second, 5 * time.Second}, pauses); diff != "" {
			t.Errorf("it is left alone for (-want +have):\n%s", diff)
		}
		r.note(pod, "not today")
		for what, other := range map[string]graph.Ref{"a change": {UID: "one", ResourceVersion: "8"}, "another object": {UID: "two", ResourceVersion: "7"}} {
			if _, still := r.still(other); still {
				t.Errorf("after %s the refusal counts", what)
			}
		}
	})
}
