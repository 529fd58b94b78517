package follow

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/internal/testkit/fixture"
)

// TestWhatIsBeingDeletedIsToldApart, both of what there is to do at the beginning and of what comes
// later.
func TestWhatIsBeingDeletedIsToldApart(t *testing.T) {
	s := NewStore()
	object := func(uid types.UID, deleting bool) graph.Event {
		return graph.Observed{Object: &graph.Object{Kind: fixture.ConfigMaps, Namespace: "shop", Name: string(uid), UID: uid,
			ResourceVersion: "1", Deleting: deleting, Finalizers: []string{"orphan"}}}
	}
	s.Apply(graph.Serving{Resources: fixture.Kinds})
	for _, k := range fixture.Kinds {
		s.Apply(graph.ListBegins{Kind: k.GroupResource()})
	}
	s.Apply(object("a", false), object("b", true), object("c", false))
	for _, k := range fixture.Kinds {
		s.Apply(graph.ListEnds{Kind: k.GroupResource()})
	}
	var ending, rest []types.UID
	s.Lead(func(e, r []types.UID) { ending, rest = append(ending, e...), append(rest, r...) })
	s.Apply(object("d", false), object("e", true))
	if diff := cmp.Diff([]types.UID{"b", "e"}, ending); diff != "" {
		t.Errorf("being deleted (-want +got):\n%s", diff)
	}
	for _, uid := range rest {
		if uid == "b" || uid == "e" {
			t.Errorf("%s is being deleted, and told among the rest", uid)
		}
	}
}
