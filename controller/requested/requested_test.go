package requested

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
)

// recording is a graph of which only uids, kinds and numbers of dependents are known.
func recording(t *testing.T, dependents int) (r *Record, told *[]string) {
	t.Helper()
	told = &[]string{}
	r = New(func(uid types.UID) (graph.View, bool) {
		kind, _, _ := strings.Cut(string(uid), "-")
		v := graph.View{Ref: graph.Ref{Kind: schema.GroupResource{Resource: kind}, Namespace: "shop", Name: string(uid), UID: uid}, Dependents: dependents}
		return v, kind != "unknown"
	})
	r.Tell(func(v graph.View, text string) { *told = append(*told, v.Name+": "+text) })
	return r, told
}

func TestWhoseRequestItWasIsToldOnceTheWatchShowsTheDeletion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, told := recording(t, 2)
		r.Saw("configmaps-1", "anna", "Foreground")
		r.Saw("configmaps-2", "anna", "Background")
		r.Saw("unknown-3", "anna", "Background")
		if len(*told) != 0 {
			t.Fatalf("told on the word of reviews: %q", *told)
		}
		r.Deleted("configmaps-1")
		r.Deleted("configmaps-1") // it terminates, and then is gone
		r.Deleted("configmaps-9")
		r.Deleted("unknown-3")
		<-time.After(remembered + time.Second)
		r.Deleted("configmaps-2") // for whatever reason: that request has failed
		if want := []string{"configmaps-1: deleted at the request of anna (Foreground)"}; !slices.Equal(*told, want) {
			t.Errorf("told %q, want %q", *told, want)
		}
	})
}

func TestOfSeveralRequestsNoneIsTakenForTheOne(t *testing.T) {
	r, told := recording(t, 1)
	for _, user := range []string{"anna", "ben", "anna", "a\nname\x1b[2J", "dora"} {
		r.Saw("configmaps-1", user, "Background")
	}
	r.Deleted("configmaps-1")
	if want := []string{`configmaps-1: deleted at the request of anna or ben or a\nname\x1b[2J, or others (Background)`}; !slices.Equal(*told, want) {
		t.Errorf("told %q, want %q", *told, want)
	}
}

// TestOnlyWhatTakesOthersAlongIsTold: of each pod that goes there would be an Event else.
func TestOnlyWhatTakesOthersAlongIsTold(t *testing.T) {
	r, told := recording(t, 0)
	r.Saw("pods-1", "anna", "Background")
	r.Saw("namespaces-1", "anna", "Background")
	r.Deleted("pods-1")
	r.Deleted("namespaces-1")
	if want := []string{"namespaces-1: deleted at the request of anna (Background)"}; !slices.Equal(*told, want) {
		t.Errorf("told %q, want %q", *told, want)
	}
}

func TestRequestsAreRememberedInABound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, told := recording(t, 1)
		saw := func(from, n int) {
			for i := range n {
				r.Saw(types.UID(fmt.Sprintf("configmaps-%d", from+i)), strings.Repeat("ä", 10_000), "Background")
			}
		}
		saw(0, 2*mostRequests)
		if n := len(r.of); n != mostRequests {
			t.Errorf("%d requests are remembered, want %d", n, mostRequests)
		}
		<-time.After(remembered + time.Second)
		saw(5000, 200)
		if n := len(r.of); n != 200 {
			t.Errorf("%d requests are remembered once the others are old, want 200", n)
		}
		for i := range 200 {
			r.Deleted(types.UID(fmt.Sprintf("configmaps-%d", 5000+i)))
		}
		if n := len(*told); n != eventsAtOnce {
			t.Errorf("%d Events at once, want %d", n, eventsAtOnce)
		}
		if n := len((*told)[0]); n > 2*mostName {
			t.Errorf("an Event of %d bytes", n)
		}
	})
}
