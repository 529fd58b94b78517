package graph_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
)

// TestHandlesSayWhatUIDsSay: of everything in a graph, of what changes in it, and of what is not
// there any more.
func TestHandlesSayWhatUIDsSay(t *testing.T) {
	byUID, byHandle := emptyGraph(), emptyGraph()
	objects := branch(7)
	both := func(ev graph.Event) {
		t.Helper()
		want := byUID.Apply(ev)
		var got []types.UID
		for _, h := range byHandle.ApplyTo(nil, ev) {
			v, ok := byHandle.FindAt(h)
			if !ok || h > byHandle.MostHandle() {
				t.Fatalf("%v: nothing at handle %d, at most %d", ev, h, byHandle.MostHandle())
			}
			got = append(got, v.UID)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%v, by uid and by handle: %s", ev, diff)
		}
	}
	for _, o := range objects {
		both(graph.Observed{Object: o})
	}
	gone := byHandle.Handle(objects[0].UID)
	both(graph.Gone{Kind: objects[0].Kind, UID: objects[0].UID})
	if v, ok := byHandle.FindAt(gone); ok || byHandle.DecideAt(gone).Why != "not in the graph" {
		t.Errorf("%v is gone: %v", v, byHandle.DecideAt(gone))
	}
	var into graph.View
	for _, o := range objects[1:] {
		h := byHandle.Handle(o.UID)
		want := byUID.Decide(o.UID)
		want.Object, want.Cause, want.AwaitedBy = graph.Ref{}, graph.Claim{}, nil
		if diff := cmp.Diff(want, byHandle.DecideAt(h)); diff != "" {
			t.Errorf("decision about %s: %s", o.Name, diff)
		}
		view, _ := byUID.Find(o.UID)
		if ok := byHandle.FindInto(&into, h); !ok || cmp.Diff(view, into) != "" {
			t.Errorf("view of %s: %s", o.Name, cmp.Diff(view, into))
		}
	}
	if h := byHandle.Handle("nobody"); h != 0 || byHandle.Has(h) {
		t.Errorf("handle %d of nobody", h)
	}
	if all := byHandle.ApplyTo([]graph.Handle{1}, graph.Recheck{}); !slices.Equal(all, []graph.Handle{1}) {
		t.Errorf("what was there before became %v", all)
	}
}
