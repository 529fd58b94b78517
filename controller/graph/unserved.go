package graph

// ownerAndKind is an owner, and a kind that was served last when objects of it referred to the
// owner.
type ownerAndKind struct{ owner, slot uint32 }

// hideDependents notes which owners the objects of a kind refer to whose watch ends. A kind that is
// not served says nothing about its objects: they may all be there when an API server serves it
// again. Only if its definition goes are they known to go with it.
func (g *Graph) hideDependents(slotID uint32) {
	if g.slots[slotID].undefined {
		return
	}
	for id := uint32(1); id < g.nodes.next; id++ {
		n := g.nodes.at(id)
		if n.entry == 0 || n.slot != slotID {
			continue
		}
		for _, e := range n.owners {
			r := ownerAndKind{g.claims.at(e.claim).owner, slotID}
			if _, known := g.hiddenDependents[r]; r.owner != 0 && !known {
				g.hiddenDependents[r] = struct{}{}
				g.slots[slotID].hiddenDependents++
			}
		}
	}
}

// away tells whether the kind is not served, and owners that are there were referred to from it.
func (s *slot) away() bool {
	return s.hiddenDependents > 0 && (!s.served || !s.Collected)
}

// showDependents ends what hideDependents noted: a list has shown what there is of the kind, or its
// definition is gone.
func (g *Graph) showDependents(slotID uint32) {
	if g.slots[slotID].hiddenDependents == 0 {
		return
	}
	for r := range g.hiddenDependents {
		if r.slot == slotID {
			delete(g.hiddenDependents, r)
		}
	}
	g.slots[slotID].hiddenDependents = 0
}

// forgetHidden is for an owner that leaves the graph.
func (g *Graph) forgetHidden(owner uint32) {
	if len(g.hiddenDependents) == 0 {
		return
	}
	for i := range g.slots {
		r := ownerAndKind{owner, uint32(i)}
		if _, ok := g.hiddenDependents[r]; ok {
			delete(g.hiddenDependents, r)
			g.slots[i].hiddenDependents--
		}
	}
}
