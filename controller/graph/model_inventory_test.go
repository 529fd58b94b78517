package graph_test

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/controller/graph"
)

// inventory counts what a namespace holds.
func (m *model) inventory(namespace string) graph.Inventory {
	counts := map[schema.GroupResource]graph.KindCount{}
	finalizers := map[string]int{}
	for _, o := range m.objects {
		if o.Namespace != namespace || namespace == "" {
			continue
		}
		c := counts[o.Kind]
		c.Kind = o.Kind
		c.Total++
		if o.Deleting {
			c.Terminating++
		}
		counts[o.Kind] = c
		for _, f := range o.Finalizers {
			finalizers[f]++
		}
	}
	sorted := slices.SortedFunc(maps.Values(counts), func(a, b graph.KindCount) int {
		if a.Kind.String() < b.Kind.String() {
			return -1
		}
		return 1
	})
	return graph.Inventory{Kinds: sorted, Finalizers: finalizers}
}
