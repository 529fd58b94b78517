package requested

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	dto "github.com/prometheus/client_model/go"
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

// TestARequestThatFailedHidesNoLaterOne: the earlier one is forgotten within two minutes, and the
// object may go at the later one before that.
func TestARequestThatFailedHidesNoLaterOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, told := recording(t, 1)
		r.Saw("configmaps-1", "anna", "Background")
		<-time.After(remembered + time.Second)
		r.Saw("configmaps-1", "ben", "Foreground")
		r.Deleted("configmaps-1")
		if want := []string{"configmaps-1: deleted at the request of ben (Foreground)"}; !slices.Equal(*told, want) {
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
		uid := func(name string, i int) types.UID { return types.UID(fmt.Sprintf("configmaps-%s-%d", name, i)) }
		saw := func(name string, n int) {
			for i := range n {
				r.Saw(uid(name, i), strings.Repeat("ä", 10_000), "Background")
			}
		}
		deleted := func(name string, n int) {
			for i := range n {
				r.Deleted(uid(name, i))
			}
		}
		saw("old", 2*eventsAtOnce)
		if n := len(r.of); n != eventsAtOnce {
			t.Errorf("%d requests are remembered, want %d", n, eventsAtOnce)
		}
		<-time.After(remembered + time.Second)
		r.forget(time.Now())
		if len(r.of) != 0 {
			t.Errorf("%d requests are remembered for ever", len(r.of))
		}
		saw("new", 2*eventsAtOnce)
		deleted("new", 2*eventsAtOnce)
		if n := len(*told); n != eventsAtOnce {
			t.Errorf("%d Events at once, want %d", n, eventsAtOnce)
		}
		if n := len((*told)[0]); n > 2*mostName {
			t.Errorf("an Event of %d bytes", n)
		}
		if n, want := unreported(t, r), float64(2*eventsAtOnce); n != want {
			t.Errorf("%v requests count as not told of, want %v", n, want)
		}
	})
}

// TestNothingIsRememberedWhereNothingIsReported: a process that writes no Events keeps nothing of
// what it is asked.
func TestNothingIsRememberedWhereNothingIsReported(t *testing.T) {
	r, _ := recording(t, 1)
	r.Tell(nil)
	for i := range 2 * eventsAtOnce {
		r.Saw(types.UID(fmt.Sprintf("configmaps-%d", i)), "anna", "Background")
	}
	if len(r.of) != 0 || unreported(t, r) != 0 {
		t.Errorf("%d requests are remembered, %v count as not told of", len(r.of), unreported(t, r))
	}
	r.Deleted("configmaps-1") // and has nothing to call
}

// TestWhatIsBeingDeletedWasAskedForBefore: a second delete of an object that terminates changes
// nothing, so whoever sends it is not named.
func TestWhatIsBeingDeletedWasAskedForBefore(t *testing.T) {
	var told []string
	r := New(func(uid types.UID) (graph.View, bool) {
		return graph.View{Ref: graph.Ref{Kind: namespaces, Name: "shop", UID: uid}, Deleting: true, Dependents: 3}, true
	})
	r.Tell(func(_ graph.View, text string) { told = append(told, text) })
	r.Saw("shop", "eve", "Background")
	r.Deleted("shop")
	if len(told) != 0 || len(r.of) != 0 {
		t.Errorf("told %q", told)
	}
}

// TestNamesAreCutBetweenLetters: a user's name is whatever an authenticator makes of it.
func TestNamesAreCutBetweenLetters(t *testing.T) {
	for _, name := range []string{strings.Repeat("ä", mostName), strings.Repeat("€", mostName), "x" + strings.Repeat("𝄞", mostName), strings.Repeat("a", mostName+1)} {
		got := short(name)
		if !utf8.ValidString(got) || len(got) > mostName+len("…") || len(got) < mostName-3 || !strings.HasSuffix(got, "…") {
			t.Errorf("%.8q…: %d bytes, ending in %q", name, len(got), got[len(got)-6:])
		}
	}
	if got := short(strings.Repeat("a", mostName)); strings.Contains(got, "…") {
		t.Errorf("what has room is cut: %d bytes", len(got))
	}
}

// TestReviewsAndWatchesAtTheSameTime: reviews come on goroutines of the server, and what watches
// show on those of kinds. Each request is told of once, or counted.
func TestReviewsAndWatchesAtTheSameTime(t *testing.T) {
	r, _ := recording(t, 1)
	var told atomic.Int64
	r.Tell(func(graph.View, string) { told.Add(1) })
	var running sync.WaitGroup
	const places, each = 8, 200
	for place := range places {
		running.Go(func() {
			for i := range each {
				uid := types.UID(fmt.Sprintf("configmaps-%d-%d", place, i))
				r.Saw(uid, "anna", "Background")
				running.Go(func() { r.Deleted(uid) })
				r.Deleted(uid)
			}
		})
	}
	running.Wait()
	if got, counted := told.Load(), unreported(t, r); float64(got)+counted != places*each || len(r.of) != 0 || r.open.Load() != 0 {
		t.Errorf("%d requests are told of and %v counted, of %d; %d are left", got, counted, places*each, len(r.of))
	}
}

// unreported is how many requests count as not told of.
func unreported(t *testing.T, r *Record) float64 {
	t.Helper()
	var m dto.Metric
	if err := r.unreported.Write(&m); err != nil {
		t.Fatal(err)
	}
	return m.GetCounter().GetValue()
}
