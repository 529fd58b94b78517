package requested

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

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

// TestARequestThatFailedHidesNoLaterOne: the earlier one is forgotten within two minutes, and the object may go at the later one before that.
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
		saw := func(kind string, n int) {
			for i := range n {
				r.Saw(types.UID(fmt.Sprintf("%s-%d", kind, i)), strings.Repeat("ä", 10_000), "Background")
			}
		}
		deleted := func(kind string, n int) {
			for i := range n {
				r.Deleted(types.UID(fmt.Sprintf("%s-%d", kind, i)))
			}
		}
		saw("nodes@", 2*mostRequests)
		if n := len(r.of); n != mostRequests {
			t.Errorf("%d requests are remembered, want %d", n, mostRequests)
		}
		<-time.After(remembered + time.Second)
		saw("crds@", mostRequests-200)
		if n := len(r.of); n != mostRequests-200 {
			t.Errorf("%d requests are remembered once the others are old, want %d", n, mostRequests-200)
		}
		deleted("crds@", mostRequests-200)
		if n := len(*told); n != eventsAtOnce {
			t.Errorf("%d Events at once, want %d", n, eventsAtOnce)
		}
		if n := len((*told)[0]); n > 2*mostName {
			t.Errorf("an Event of %d bytes", n)
		}
		var untold dto.Metric
		if err := r.untold.Write(&untold); err != nil {
			t.Fatal(err)
		}
		if n, want := untold.GetCounter().GetValue(), float64(mostRequests+mostRequests-200-eventsAtOnce); n != want {
			t.Errorf("%v requests count as not told of, want %v", n, want)
		}
	})
}

// TestManyDeletesInOneNamespaceKeepNoOtherFromBeingTold: who may delete in one could hide else who deleted in another.
func TestManyDeletesInOneNamespaceKeepNoOtherFromBeingTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, told := recording(t, 1)
		const deletes = 3000
		for i := range deletes {
			uid := types.UID(fmt.Sprintf("configmaps@1-%d", i))
			r.Saw(uid, "eve", "Background")
			r.Deleted(uid)
		}
		if n := len(*told); n != ofNamespaceAtOnce {
			t.Errorf("%d Events at once of one namespace, want %d", n, ofNamespaceAtOnce)
		}
		for i := range deletes { // and nothing comes of these
			r.Saw(types.UID(fmt.Sprintf("configmaps@1-refused-%d", i)), "eve", "Background")
		}
		if n := len(r.of); n != mostOfNamespace {
			t.Errorf("%d requests of one namespace are remembered, want %d", n, mostOfNamespace)
		}
		*told = nil
		r.Saw("configmaps@2-1", "anna", "Background")
		r.Saw("nodes@-1", "ben", "Background")
		r.Deleted("configmaps@2-1")
		r.Deleted("nodes@-1")
		if len(*told) != 2 {
			t.Errorf("told of what was deleted elsewhere: %q", *told)
		}
	})
}

// TestNamespacesHaveTheirPartForAsLongAsTheyNeedIt: else a process would hold something of each namespace that there ever was.
func TestNamespacesHaveTheirPartForAsLongAsTheyNeedIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := recording(t, 1)
		var running sync.WaitGroup
		ctx, end := context.WithCancel(t.Context())
		running.Go(func() { _ = r.Run(ctx) })
		for i := range 2 * mostRequests {
			uid := types.UID(fmt.Sprintf("configmaps@%d-1", i))
			r.Saw(uid, "anna", "Background")
			r.Deleted(uid)
		}
		parts := func() int {
			r.mu.Lock()
			defer r.mu.Unlock()
			return len(r.parts)
		}
		if n := parts(); n != mostRequests {
			t.Errorf("%d namespaces have a part, want %d", n, mostRequests)
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
