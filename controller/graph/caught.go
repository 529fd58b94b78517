package graph

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Caught is an object that goes, or an example of its kind.
type Caught struct {
	Ref
	Version, KindName string // by which it is read
}

// Catch returns the objects of wanted kinds that go with an object, sorted. The object's own
// dependents of kept kinds stay. What is being deleted already is left out. Catch looks at no more
// than most references. complete is false if there may be others: the bound was reached, a kind is
// not listed yet, or the object is not in the graph and something depends on it.
func (g *Graph) Catch(
	uid types.UID, kept, wanted func(schema.GroupResource) bool, most int,
) (caught []Caught, complete bool) {
	f := g.simulate(Search{UID: uid, Kept: kept}, most)
	want := map[uint32]bool{} // by slot
	f.found = func(id uint32) {
		n := g.nodes.at(id)
		yes, known := want[n.slot]
		if !known {
			yes = wanted(g.slots[n.slot].GroupResource())
			want[n.slot] = yes
		}
		if yes && n.flags&deleting == 0 {
			caught = append(caught, g.caught(id))
		}
	}
	known := f.play(Search{})
	slices.SortFunc(caught, func(a, b Caught) int { return cmp.Compare(a.String(), b.String()) })
	return caught, known && !f.spent()
}

func (g *Graph) caught(id uint32) Caught {
	slot := &g.slots[g.nodes.at(id).slot]
	return Caught{Ref: g.refOf(id), Version: slot.Version, KindName: slot.Kind}
}

// beginRoot begins with the object that is deleted, and reports whether only namespaced objects can
// depend on it.
func (f *cascade) beginRoot() (onlyNamespaced bool) {
	onlyNamespaced = true
	for id, n := range f.g.nodesOf(f.root) {
		onlyNamespaced = onlyNamespaced && f.g.slots[n.slot].Namespaced
		f.begin(id)
	}
	return onlyNamespaced
}

// knows reports whether all that depends on an object has been seen. For none, 0, it says whether all
// kinds have.
func (g *Graph) knows(entryID uint32, onlyNamespaced bool) bool {
	e := g.entries.at(entryID)
	unseen := e.node == 0 && e.claim != 0
	return g.resolved != nil && !unseen && g.listingKinds(onlyNamespaced) == ""
}

// Holds returns, sorted, one object of each wanted kind in the namespace of a Search, without what
// Kubernetes itself puts into every namespace. With Instances it says whether there are any of that
// kind. complete is false if there may be others, since a kind is not listed yet.
//
// The cost is a few steps for each kind in the namespace.
func (g *Graph) Holds(s Search, wanted func(schema.GroupResource) bool) (kinds []Caught, complete bool) {
	if !s.Instances.Empty() {
		slot := &g.slots[g.slotIDs[s.Instances]] // the first is no kind's
		if slot.nodes > 0 && wanted(s.Instances) {
			kinds = append(kinds, Caught{Ref{Kind: s.Instances}, slot.Version, slot.Kind})
		}
		return kinds, g.complete(s.Instances)
	}
	complete = g.knows(0, true)
	inv := g.inventories[g.namespaces.ids[s.Namespace]]
	if inv == nil {
		return nil, complete
	}
	for slotID, held := range inv.kinds {
		gr := g.slots[slotID].GroupResource()
		if len(held.nodes) > int(held.usual) && wanted(gr) {
			kinds = append(kinds, g.caught(held.nodes[0]))
		}
	}
	slices.SortFunc(kinds, func(a, b Caught) int { return cmp.Compare(a.Kind.String(), b.Kind.String()) })
	return kinds, complete
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
	known := f.play(s)
	return uids, known && !f.spent()
}
