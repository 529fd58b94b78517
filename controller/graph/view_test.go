package graph_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/internal/testkit/script"
)

func played(t *testing.T, lines ...string) *graph.Graph {
	t.Helper()
	r := script.New()
	for _, line := range lines {
		if _, err := r.Run(line); err != nil {
			t.Fatal(err)
		}
	}
	return r.Graph
}

func uidsOf(views []graph.View) (uids []types.UID) {
	for _, v := range views {
		uids = append(uids, v.UID)
	}
	return uids
}

// TestPagesOfViewsShowEachObjectOnce copies a graph in pages of every size.
func TestPagesOfViewsShowEachObjectOnce(t *testing.T) {
	g := played(t, "serve", "sync", "see pods x/a uid=a", "see pods x/b uid=b", "see pods x/c uid=c", "see pods x/d uid=d",
		"see configmaps x/e uid=e", "see pods y/f uid=f", "gone pods b")
	all := []types.UID{"a", "c", "d", "e", "f"}
	inX := []types.UID{"a", "c", "d"}
	for size := 1; size <= 6; size++ {
		for name, page := range map[string]struct {
			of   func(from uint32) ([]graph.View, uint32)
			want []types.UID
		}{
			"views":   {func(from uint32) ([]graph.View, uint32) { return g.Views(from, size) }, all},
			"content": {func(from uint32) ([]graph.View, uint32) { return g.Content("x", podKind, from, size) }, inX},
		} {
			var got []types.UID
			for next, pages := uint32(0), 0; ; pages++ {
				views, cursor := page.of(next)
				got = append(got, uidsOf(views)...)
				if len(views) > size || pages > 10 {
					t.Fatalf("%s in pages of %d: page %d has %d", name, size, pages, len(views))
				}
				if next = cursor; next == 0 {
					break
				}
			}
			slices.Sort(got)
			if diff := cmp.Diff(page.want, got); diff != "" {
				t.Errorf("%s in pages of %d (-want +got):\n%s", name, size, diff)
			}
		}
	}
	if views, next := g.Content("nowhere", podKind, 0, 5); len(views) != 0 || next != 0 {
		t.Errorf("a namespace that holds nothing has %d, then %d", len(views), next)
	}
}
