package graph

// ownerAndKind is an owner, and a kind whose objects referred to it when the kind was last served.
type ownerAndKind struct{ owner, slot uint32 }

// hideDependents notes the owners to which objects of a kind refer when its watch ends. A kind that
// is not served says nothing about its objects: all may be there when it is served again. Only if
// its definition goes are they known to be gone.
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

// away reports whether the kind is not served, and had objects that referred to owners which are
// there.
func (s *slot) away() bool {
	return s.hiddenDependents > 0 && (!s.served || !s.Collected)
}

// showDependents forgets what hideDependents noted: a list has shown what there is of the kind, or
// its definition is gone.
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

// forgetHidden forgets an owner that leaves the graph.
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
