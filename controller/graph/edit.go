package graph

import "slices"

// noteEdit marks the references that an edit may have made the reason for a delete: those it has
// added, and all that are left if it has removed one that kept the object. Such a reference is
// edited if its owner is not known to be there, and also written if the owner is gone or being
// deleted. Whoever deleted that owner did not ask for the object to go: it was no dependent then,
// or had another owner.
func (g *Graph) noteEdit(n *node, before []edge) {
	severs := slices.ContainsFunc(before, func(old edge) bool { return g.keeps(old) && !g.refers(n, old) })
	for i := range n.owners {
		e := &n.owners[i]
		at := slices.IndexFunc(before, func(old edge) bool { return old.claim == e.claim })
		if at >= 0 {
			e.bits |= before[at].bits & notes
		}
		if at >= 0 && !severs {
			continue
		}
		c := g.claims.at(e.claim)
		ends := c.verdict == absent || c.verdict == waiting || c.owner != 0 && g.nodes.at(c.owner).flags&deleting != 0
		switch {
		case ends:
			e.bits |= written | edited
		case c.verdict != present:
			e.bits |= edited
		}
	}
}

// keeps reports whether an owner keeps its dependents, as far as is known: it is neither gone nor
// being deleted.
func (g *Graph) keeps(e edge) bool {
	c := g.claims.at(e.claim)
	if c.verdict == absent || c.verdict == waiting || c.verdict == orphaning {
		return false
	}
	return c.owner == 0 || g.nodes.at(c.owner).flags&deleting == 0
}

// refers reports whether an object still refers to the uid of an owner, whatever else it says of
// it.
func (g *Graph) refers(n *node, old edge) bool {
	entryID := g.claims.at(old.claim).entry
	return slices.ContainsFunc(n.owners, func(e edge) bool { return g.claims.at(e.claim).entry == entryID })
}

// clearEdited clears edited in the references that make a claim whose owner has been found, unless
// they are written, too.
func (g *Graph) clearEdited(c *claim) {
	for _, d := range c.dependents {
		if e := &g.nodes.at(d.node).owners[d.edge]; e.bits&written == 0 {
			e.bits &^= edited
		}
	}
}
