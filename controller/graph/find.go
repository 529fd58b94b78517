package graph

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// Find returns the object with a uid as the graph has it; false if there is none. Of several it is
// the one that came last.
func (g *Graph) Find(uid types.UID) (View, bool) {
	id := g.newest(uid)
	if id == 0 {
		return View{}, false
	}
	return g.view(id), true
}

// Has reports whether there is an object with a uid.
func (g *Graph) Has(uid types.UID) bool { return g.newest(uid) != 0 }

// Terminating reports whether an object is there, and being deleted.
func (g *Graph) Terminating(uid types.UID) bool {
	return g.nodes.at(g.newest(uid)).flags&deleting != 0
}

// Deleted reports whether an object is gone, is being deleted, or has an accepted request whose
// effect the watch has not shown.
func (g *Graph) Deleted(uid types.UID) bool {
	id := g.newest(uid)
	return id == 0 || g.nodes.at(id).flags&(deleting|accepted) != 0
}

// Refers reports whether the graph has an object, and whether it has the same owner references.
func (g *Graph) Refers(o *Object) (same, there bool) {
	id := g.nodeIn(o.Kind, o.UID)
	return id != 0 && g.sameOwners(g.nodes.at(id).owners, o.Owners), id != 0
}

// Misnamed returns an object that has a reference to a uid, with blockOwnerDeletion, but does not
// mean the object of that uid: the reference gives another kind or name, or the object is in
// another namespace. It returns false if there is none.
func (g *Graph) Misnamed(uid types.UID) (Ref, bool) {
	for _, c := range g.claimsOn(g.find(uid)) {
		for _, d := range c.dependents {
			if c.owner == 0 && g.nodes.at(d.node).owners[d.edge].blocks() > 0 {
				return g.refOf(d.node), true
			}
		}
	}
	return Ref{}, false
}

// Dependents returns the objects with references to the object with a uid, sorted by uid.
// Incomplete says whether there may be others.
func (g *Graph) Dependents(uid types.UID) (views []View) {
	var nodes []uint32
	for _, c := range g.claimsOn(g.find(uid)) {
		if c.owner == 0 {
			continue // it names something else by this uid
		}
		for _, d := range c.dependents {
			nodes = append(nodes, d.node)
		}
	}
	slices.Sort(nodes)
	nodes = slices.Compact(nodes) // whoever refers to it twice depends on it once
	for _, id := range nodes {
		views = append(views, g.view(id))
	}
	slices.SortFunc(views, func(a, b View) int { return cmp.Compare(a.UID, b.UID) })
	return views
}

// Incomplete names the kinds that may hold unseen dependents of an object, because their list is
// not complete or they are not served now; empty if there are none.
func (g *Graph) Incomplete(uid types.UID) string {
	id := g.newest(uid)
	if id == 0 {
		return ""
	}
	return g.incompleteKinds(id)
}

// Finalized returns up to n objects that carry a finalizer. The cursor starts at 0, and the next
// one is 0 at the end. One call looks at a bounded part of the graph.
func (g *Graph) Finalized(finalizer string, from uint32, n int) (views []View, next uint32) {
	carries := once(func(list uint32) bool { // there are few different ones
		return slices.Contains(unpack(g.finalizers.val(list)), finalizer)
	})
	next = g.walk(from, 1<<16, func(id uint32, v *node) bool {
		if v.finalizers != 0 && carries(v.finalizers) {
			views = append(views, g.view(id))
		}
		return len(views) < n
	})
	return views, next
}
