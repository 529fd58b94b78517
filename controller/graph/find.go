package graph

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// Find returns the object with a uid as the graph has it; false if there is none. Of several it is
// the one that came last.
func (g *Graph) Find(uid types.UID) (View, bool) {
	entryID := g.find(uid)
	if entryID == 0 || g.entries.at(entryID).node == 0 {
		return View{}, false
	}
	return g.view(g.entries.at(entryID).node), true
}

// Terminating reports whether an object is there, and being deleted.
func (g *Graph) Terminating(uid types.UID) bool {
	entryID := g.find(uid)
	if entryID == 0 || g.entries.at(entryID).node == 0 {
		return false
	}
	return g.nodes.at(g.entries.at(entryID).node).flags&deleting != 0
}

// Deleted reports whether an object is gone, is being deleted, or has an accepted request whose
// effect the watch has not shown.
func (g *Graph) Deleted(uid types.UID) bool {
	entryID := g.find(uid)
	if entryID == 0 || g.entries.at(entryID).node == 0 {
		return true
	}
	return g.nodes.at(g.entries.at(entryID).node).flags&(deleting|accepted) != 0
}

// Refers reports whether the graph has an object, and whether it has the same owner references.
func (g *Graph) Refers(o *Object) (same, there bool) {
	id := g.nodeOf(g.slotIDs[o.Kind], g.find(o.UID))
	if id == 0 {
		return false, false
	}
	return g.sameOwners(g.nodes.at(id).owners, o.Owners), true
}

// Misnamed returns an object that has a reference to a uid, with blockOwnerDeletion, but does not
// mean the object of that uid: the reference gives another kind or name, or the object is in
// another namespace. It returns false if there is none.
func (g *Graph) Misnamed(uid types.UID) (Ref, bool) {
	entryID := g.find(uid)
	if entryID == 0 {
		return Ref{}, false
	}
	for id := g.entries.at(entryID).claim; id != 0; id = g.claims.at(id).next {
		if c := g.claims.at(id); c.owner == 0 && c.blocking > 0 {
			for _, d := range c.dependents {
				if g.nodes.at(d.node).owners[d.edge].blocks() > 0 {
					return g.refOf(d.node), true
				}
			}
		}
	}
	return Ref{}, false
}

// Dependents returns the objects with references to the object with a uid, sorted by uid.
// Incomplete says whether there may be others.
func (g *Graph) Dependents(uid types.UID) []View {
	entryID := g.find(uid)
	if entryID == 0 {
		return nil
	}
	var nodes []uint32
	for id := g.entries.at(entryID).claim; id != 0; id = g.claims.at(id).next {
		if g.claims.at(id).owner == 0 {
			continue // it names something else by this uid
		}
		for _, d := range g.claims.at(id).dependents {
			nodes = append(nodes, d.node)
		}
	}
	slices.Sort(nodes)
	nodes = slices.Compact(nodes) // whoever refers to it twice depends on it once
	if len(nodes) == 0 {
		return nil
	}
	views := make([]View, len(nodes))
	for i, id := range nodes {
		g.viewInto(id, &views[i])
	}
	slices.SortFunc(views, func(a, b View) int { return cmp.Compare(a.UID, b.UID) })
	return views
}

// Incomplete names the kinds that may hold unseen dependents of an object, because their list is
// not complete or they are not served now; empty if there are none.
func (g *Graph) Incomplete(uid types.UID) string {
	entryID := g.find(uid)
	if entryID == 0 || g.entries.at(entryID).node == 0 {
		return ""
	}
	return g.incompleteKinds(g.entries.at(entryID).node)
}

// Finalized returns up to n objects that carry a finalizer. The cursor starts at 0, and the next
// one is 0 at the end. One call looks at a bounded part of the graph.
func (g *Graph) Finalized(finalizer string, from uint32, n int) ([]View, uint32) {
	const most = 1 << 16
	carries := map[uint32]bool{} // by list: there are few different ones
	var views []View
	for id := max(from, 1); id < g.nodes.next; id++ {
		if len(views) == n || id-from >= most {
			return views, id
		}
		v := g.nodes.at(id)
		if v.entry == 0 || v.finalizers == 0 {
			continue
		}
		yes, known := carries[v.finalizers]
		if !known {
			yes = slices.Contains(unpack(g.finalizers.val(v.finalizers)), finalizer)
			carries[v.finalizers] = yes
		}
		if yes {
			views = append(views, g.view(id))
		}
	}
	return views, 0
}
