package graph

// hideDependents notes the owners to which objects of a kind refer when its watch ends. A kind that
// is not served says nothing about its objects: all may be there when it is served again. Only if
// its definition goes are they known to be gone.
func (g *Graph) hideDependents(slotID uint32) {
	s := &g.slots[slotID]
	if s.undefined {
		return
	}
	if s.hidden == nil {
		s.hidden = map[uint32]struct{}{}
	}
	for _, n := range g.all() {
		if n.slot != slotID {
			continue
		}
		for _, e := range n.owners {
			if owner := g.claims.at(e.claim).owner; owner != 0 {
				s.hidden[owner] = struct{}{}
				g.hides = true
			}
		}
	}
}

// away reports whether the kind is not served, and had objects that referred to owners which are
// there.
func (s *slot) away() bool { return len(s.hidden) > 0 && (!s.served || !s.Collected) }

// forgetHidden forgets an owner that leaves the graph.
func (g *Graph) forgetHidden(owner uint32) {
	if !g.hides {
		return
	}
	for i := range g.slots {
		delete(g.slots[i].hidden, owner)
	}
}
