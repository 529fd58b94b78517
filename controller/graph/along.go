package graph

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// What a namespace holds goes with it, and so do the objects of a definition, although nothing of
// it refers to either. What depends on it has to be found as well, so each object is gone through;
// Weigh counts only.

// along has that go with a node, if it is a namespace or a definition.
func (f *cascade) along(n *node) {
	switch f.g.slots[n.slot].GroupResource() {
	case namespacesKind:
		f.content(n.name)
	case definitions:
		f.instances(schema.ParseGroupResource(n.name))
	}
}

// content has everything in a namespace go; what Kubernetes itself puts into each, where that is
// asked for.
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

// instances has every object of a kind go.
func (f *cascade) instances(kind schema.GroupResource) {
	slotID := f.g.slotIDs[kind]
	if slotID == 0 || f.g.slots[slotID].nodes == 0 {
		return
	}
	for _, id := range f.ofKind(slotID) {
		if f.spent() {
			return
		}
		f.looked++
		if !f.gone(id) {
			f.goes(id)
		}
	}
}

// ofKind are the nodes of a kind. The first to be asked for takes a step for each node there is,
// and others then none: a user may have any number of definitions go.
func (f *cascade) ofKind(slotID uint32) []uint32 {
	if f.byKind != nil {
		return f.byKind[slotID]
	}
	if f.looked += int(f.g.nodes.next) / 8; f.spent() { // they lie side by side
		return nil
	}
	f.byKind = make([][]uint32, len(f.g.slots))
	for id := uint32(1); id < f.g.nodes.next; id++ {
		if n := f.g.nodes.at(id); n.entry != 0 {
			f.byKind[n.slot] = append(f.byKind[n.slot], id)
		}
	}
	return f.byKind[slotID]
}
