package graph

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A namespace takes its contents with it, and a definition its objects, although these do not refer
// to it. A cascade visits each of them, because their dependents go too; Weigh only counts them.

// addContents marks as deleted what goes with a node that is a namespace or a definition.
func (f *cascade) addContents(n *node) {
	switch f.g.slots[n.slot].GroupResource() {
	case namespacesKind:
		f.content(n.name)
	case definitions:
		f.instances(schema.ParseGroupResource(n.name))
	}
}

// content marks as deleted everything in a namespace; what Kubernetes itself puts there only if
// usual is set.
func (f *cascade) content(namespace string) {
	inv := f.g.inventories[f.g.namespaces.ids[namespace]]
	if inv == nil {
		return
	}
	for _, slotID := range slices.Sorted(maps.Keys(inv.kinds)) {
		for _, id := range inv.kinds[slotID].nodes {
			if f.spent() {
				return
			}
			f.looked++
			if !f.gone(id) && (f.usual || !f.g.isUsual(f.g.nodes.at(id))) {
				f.goes(id)
			}
		}
	}
}

// instances marks as deleted every object of a kind. It costs a step for each object in the graph.
func (f *cascade) instances(kind schema.GroupResource) {
	slotID := f.g.slotIDs[kind]
	if slotID == 0 || f.g.slots[slotID].nodes == 0 {
		return
	}
	f.looked += int(f.g.nodes.next) / 8 // they lie side by side
	for id, n := range f.g.all() {
		if n.slot != slotID {
			continue
		}
		if f.spent() {
			return
		}
		f.looked++
		if !f.gone(id) {
			f.goes(id)
		}
	}
}
