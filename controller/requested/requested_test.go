package requested

import (
	"context"
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
		if _, number, ok := strings.Cut(kind, "@"); ok { // in a namespace of that number, or in none
			v.Namespace = strings.TrimSuffix("shop"+number, "shop")
		}
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
		const namespaces = 20 // of which none reaches its own bounds
		uid := func(name string, i int) types.UID {
			return types.UID(fmt.Sprintf("configmaps@%d-%s-%d", i%namespaces, name, i))
		}
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

// TestManyDeletesInOnePlaceKeepNoOtherFromBeingReported: who may delete in one namespace, or
// objects of one kind, could hide else who deleted elsewhere.
func TestManyDeletesInOnePlaceKeepNoOtherFromBeingReported(t *testing.T) {
	for name, prefix := range map[string]string{"a namespace": "configmaps@1", "a kind without namespaces": "nodes@"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, told := recording(t, 1)
				const deletes = 3000
				for i := range deletes {
					uid := types.UID(fmt.Sprintf("%s-%d", prefix, i))
					r.Saw(uid, "eve", "Background")
					r.Deleted(uid)
				}
				if n := len(*told); n != ofPartAtOnce {
					t.Errorf("%d Events at once, want %d", n, ofPartAtOnce)
				}
				for i := range deletes { // and nothing comes of these
					r.Saw(types.UID(fmt.Sprintf("%s-refused-%d", prefix, i)), "eve", "Background")
				}
				if len(r.of) != 0 {
					t.Errorf("%d more requests are remembered", len(r.of))
				}
				*told = nil
				for _, uid := range []types.UID{"configmaps@2-1", "volumes@-1", "namespaces@-1"} {
					r.Saw(uid, "anna", "Background")
					r.Deleted(uid)
				}
				if len(*told) != 3 {
					t.Errorf("reported of what was deleted elsewhere: %q", *told)
				}
			})
		})
	}
}

// TestNamespacesHaveTheirPartForAsLongAsTheyNeedIt: else a process would hold something of each
// namespace that there ever was.
func TestNamespacesHaveTheirPartForAsLongAsTheyNeedIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := recording(t, 1)
		var running sync.WaitGroup
		ctx, end := context.WithCancel(t.Context())
		running.Go(func() { _ = r.Run(ctx) })
		for i := range 2 * mostParts {
			uid := types.UID(fmt.Sprintf("configmaps@%d-1", i))
			r.Saw(uid, "anna", "Background")
			r.Deleted(uid)
		}
		parts := func() int {
			r.mu.Lock()
			defer r.mu.Unlock()
			return len(r.parts)
		}
		if n := parts(); n != mostParts {
			t.Errorf("%d namespaces have a part, want %d", n, mostParts)
		}
		<-time.After(2*remembered + time.Second)
		synctest.Wait()
		if n := parts(); n != 0 {
			t.Errorf("%d namespaces still have a part", n)
		}
		end()
		running.Wait()
	})
}

// TestNothingIsRememberedWhereNothingIsReported: a process that writes no Events keeps nothing of
// what it is asked.
func TestNothingIsRememberedWhereNothingIsReported(t *testing.T) {
	r, _ := recording(t, 1)
	r.Tell(nil)
	for i := range 2 * mostParts {
		r.Saw(types.UID(fmt.Sprintf("configmaps-%d", i)), "anna", "Background")
	}
	if len(r.of) != 0 || len(r.parts) != 0 || unreported(t, r) != 0 {
		t.Errorf("%d requests of %d places are remembered, %v count as not told of", len(r.of), len(r.parts), unreported(t, r))
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

// TestEventsAreWrittenAgainAsTimePasses: one a second for a place that has used up its own, and for
// all together no more than theirs.
func TestEventsAreWrittenAgainAsTimePasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, told := recording(t, 1)
		deleted := func(place, n int, name string) {
			for i := range n {
				uid := types.UID(fmt.Sprintf("configmaps@%d-%s-%d", place, name, i))
				r.Saw(uid, "anna", "Background")
				r.Deleted(uid)
			}
		}
		deleted(1, 2*ofPartAtOnce, "first")
		*told = nil
		<-time.After(3 * time.Second)
		deleted(1, 20, "second")
		if len(*told) != 3*ofPartASecond {
			t.Errorf("%d Events in three seconds, want %d", len(*told), 3*ofPartASecond)
		}
		for place := range 2 * eventsAtOnce / ofPartAtOnce { // all that there is for all
			deleted(100+place, ofPartAtOnce, "third")
		}
		*told = nil
		<-time.After(2 * time.Second)
		for place := range 100 {
			deleted(1000+place, 1, "fourth")
		}
		if len(*told) != 2*EventsASecond {
			t.Errorf("%d Events of all places in two seconds, want %d", len(*told), 2*EventsASecond)
		}
	})
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
				uid := types.UID(fmt.Sprintf("configmaps@%d-%d", place, i))
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
