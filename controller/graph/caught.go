package graph

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Search says what is deleted, and which of all that then goes is looked for.
type Search struct {
	// UID is an object that is deleted with its dependents, but for its own of kept kinds; empty for none.
	UID  types.UID
	Kept func(schema.GroupResource) bool
	// Namespace is one of which everything goes; empty for none.
	Namespace string
	// Instances is a kind of which every object goes, with its dependents; the zero value for none.
	Instances schema.GroupResource
	// Wanted kinds are looked for.
	Wanted func(schema.GroupResource) bool
	// Most is how many objects are told at most, besides one of each kind.
	Most int
}

// Caught is an object that goes.
type Caught struct {
	Ref
	Version, KindName string // by which it is read
}

// Catch finds the objects of wanted kinds that go, sorted, and counts them: there may be more than are told. What is being
// deleted already is not among them, nor what Kubernetes itself puts into every namespace, nor events and leases. along: some
// go with a namespace, or with a definition, that goes itself for its owners, and need not depend on anything. complete is false if
// there may be others, since a kind is not listed yet, or the object is not in the graph and something depends on it.
//
// It costs what Cascade does, besides a step for each object in the graph with Instances, and for each one in a namespace that goes.
func (g *Graph) Catch(s Search) (caught []Caught, count int, along, complete bool) {
	told := make([]bool, len(g.slots)) // kinds
	along, complete = g.search(s, func(id uint32) {
		slotID := g.nodes.at(id).slot
		if count++; count <= s.Most || !told[slotID] {
			told[slotID] = true
			slot := &g.slots[slotID]
			caught = append(caught, Caught{Ref: g.refOf(id), Version: slot.Version, KindName: slot.Kind})
		}
	})
	slices.SortFunc(caught, func(a, b Caught) int { return cmp.Compare(a.String(), b.String()) })
	return caught, count, along, complete
}

// Going are the uids of all that Catch counts, in no order.
func (g *Graph) Going(s Search) (uids []types.UID, complete bool) {
	_, complete = g.search(s, func(id uint32) { uids = append(uids, g.uidOf(g.nodes.at(id).entry)) })
	return uids, complete
}

// search tells of each object that is looked for.
func (g *Graph) search(s Search, found func(id uint32)) (along, complete bool) {
	entryID := g.find(s.UID)
	onlyNamespaced := s.Namespace == "" && s.Instances.Empty()
	f := cascade{g: g, root: entryID, kept: s.Kept, keeps: map[uint32]bool{}, left: map[uint32]int32{}}
	wanted := map[uint32]bool{} // by slot
	f.found = func(id uint32) {
		n := g.nodes.at(id)
		along = f.along(n) || along
		want, known := wanted[n.slot]
		if !known {
			gr := g.slots[n.slot].GroupResource()
			want = !passing[gr] && s.Wanted(gr)
			wanted[n.slot] = want
		}
		if want && n.flags&deleting == 0 && !g.isUsual(n) {
			found(id)
		}
	}
	unseen := false
	if s.UID != "" && entryID != 0 {
		node := g.entries.at(entryID).node
		unseen = node == 0 && g.entries.at(entryID).claim != 0
		for id := node; id != 0; id = g.next(id) {
			onlyNamespaced = onlyNamespaced && g.slots[g.nodes.at(id).slot].Namespaced
			f.begin(id)
		}
	}
	if !s.Instances.Empty() {
		f.instances(s.Instances)
	}
	if s.Namespace != "" {
		f.content(s.Namespace)
	}
	f.run()
	return along, g.resolved != nil && !unseen && g.listingKinds(onlyNamespaced) == ""
}
