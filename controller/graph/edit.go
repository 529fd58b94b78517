package graph

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// UnknownWriter is the Writer of references of which nothing tells who wrote them: managedFields do
// not say who removed one, and a client may have cleared them.
const UnknownWriter = "unknown"

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
		default:
			continue
		}
		if at >= 0 {
			e.bits |= severed
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
			e.bits &^= edited | severed
		}
	}
}

// wrote takes in who wrote the references of an object, unless they are others by now.
func (g *Graph) wrote(ev Wrote) {
	id := g.nodeOf(g.slotIDs[ev.Object.Kind], g.find(ev.Object.UID))
	if id == 0 || !g.sameOwners(g.nodes.at(id).owners, ev.Object.Owners) || g.writers[id] == ev.Writer {
		return
	}
	if g.writers[id] = ev.Writer; ev.Writer == "" {
		delete(g.writers, id)
	}
	g.mark(id)
}

// inferenceFor is what the delete of an object rests on: cause by one of its references.
func (g *Graph) inferenceFor(n *node, c cause, e edge) Inference {
	i := g.inferenceOf(c)
	if c == 0 || c&inherited != 0 {
		return i
	}
	i.Reference = g.uidOf(g.claims.at(e.claim).entry)
	i.Edited = e.bits&edited != 0
	if i.Writer = g.writers[g.nodeOf(n.slot, n.entry)]; e.bits&severed != 0 {
		i.Writer = UnknownWriter
	}
	return i
}

// Cause is what inferences are counted by: the kind of the owners, or, with Writer, who edited the
// references.
type Cause struct {
	Owners schema.GroupResource
	Writer string
}
