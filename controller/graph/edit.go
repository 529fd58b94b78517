package graph

import "slices"

// noteEdit marks what an edit has done to the references of an object. A reference that it has put
// there, while the owner was not known to be there, is edited; so is one that it has left as the
// last, by taking away another that kept the object. If the owner is known to be gone by then, or
// to be on its way, it is written: whoever deleted that owner did not ask for the object to go. It
// was not the owner's then, or another's, too.
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

// keeps tells whether an owner keeps its dependents, as far as is known: it is neither gone nor on
// its way.
func (g *Graph) keeps(e edge) bool {
	c := g.claims.at(e.claim)
	if c.verdict == absent || c.verdict == waiting || c.verdict == orphaning {
		return false
	}
	return c.owner == 0 || g.nodes.at(c.owner).flags&deleting == 0
}

// refers tells whether an object refers to an owner, be it in other words.
func (g *Graph) refers(n *node, old edge) bool {
	return slices.ContainsFunc(n.owners, func(e edge) bool { return g.claims.at(e.claim).entry == g.claims.at(old.claim).entry })
}

// clearEdited takes back what was noted of references whose owner was not known: it is there.
func (g *Graph) clearEdited(c *claim) {
	for _, d := range c.dependents {
		if e := &g.nodes.at(d.node).owners[d.edge]; e.bits&written == 0 {
			e.bits &^= edited
		}
	}
}
