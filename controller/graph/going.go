package graph

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Catch returns the objects of wanted kinds that go with an object, sorted. The object's own
// dependents of kept kinds stay. What is being deleted already is left out. Catch looks at no more
// than most references. complete is false if there may be others: the bound was reached, a kind is
// not listed yet, or the object is not in the graph and something depends on it.
func (g *Graph) Catch(
	uid types.UID, kept, wanted func(schema.GroupResource) bool, most int,
) (caught []Ref, complete bool) {
	f := g.simulate(Search{UID: uid, Kept: kept}, most)
	wants := g.perKind(wanted)
	f.found = func(id uint32) {
		if n := g.nodes.at(id); wants(n.slot) && n.flags&deleting == 0 {
			caught = append(caught, g.refOf(id))
		}
	}
	known := f.play()
	slices.SortFunc(caught, func(a, b Ref) int { return cmp.Compare(a.String(), b.String()) })
	return caught, known && !f.spent()
}

// knows reports whether all that depends on an object has been seen. For none, 0, it says whether all
// kinds have.
func (g *Graph) knows(entryID uint32, onlyNamespaced bool) bool {
	e := g.entries.at(entryID)
	unseen := e.node == 0 && e.claim != 0
	return g.resolved != nil && !unseen && g.listingKinds(onlyNamespaced) == ""
}

// Search says what is deleted.
type Search struct {
	// UID is an object that is deleted with its dependents, except its own of kept kinds. It may be
	// empty.
	UID  types.UID
	Kept func(schema.GroupResource) bool
	// Namespace is a namespace whose contents go. It may be empty.
	Namespace string
	// Instances is a kind whose objects all go, with their dependents. It may be zero.
	Instances schema.GroupResource
}

// Going returns the uids of all that goes with a Search: dependents at any depth, and the contents
// of namespaces and definitions. The order is undefined. What is being deleted already is left out,
// and so is what Kubernetes itself puts into every namespace. Going looks at no more than most
// references and objects; complete is as in Catch.
//
// The cost is that of Cascade, plus a step for each object in the graph with Instances, and for
// each object in a namespace that goes.
func (g *Graph) Going(s Search, most int) (uids []types.UID, complete bool) {
	f := g.simulate(s, most)
	f.found = func(id uint32) {
		n := g.nodes.at(id)
		f.addContents(n)
		if n.flags&deleting == 0 && !g.isUsual(n) {
			uids = append(uids, g.uidOf(n.entry))
		}
	}
	known := f.play()
	return uids, known && !f.spent()
}

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
