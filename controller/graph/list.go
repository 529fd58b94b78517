package graph

import "k8s.io/apimachinery/pkg/runtime/schema"

func (ev ListBegins) apply(g *Graph) { g.slots[g.slotOf(ev.Kind)].epoch++ }

// apply removes what the list did not show. Claims that only a lookup found present are asked
// again: the owner may have gone between the lookup and the list.
func (ev ListEnds) apply(g *Graph) {
	slotID := g.slotOf(ev.Kind)
	s := &g.slots[slotID]
	if s.state == Unwatched {
		return
	}
	s.state, s.reason = Synced, ""
	s.lists++
	s.hidden = nil
	g.sweep(slotID, func(n *node) bool { return n.epoch != s.epoch }, g.unlist)
	g.claims.each(func(id uint32, c *claim) {
		if c.looked == lookedPresent && g.typeInfos[c.typ].slot == slotID {
			g.forgetLookup(id)
		}
	})
	g.incompleteChanged()
}

// sweep calls lose for each node of a kind for which gone returns true.
func (g *Graph) sweep(slotID uint32, gone func(*node) bool, lose func(id uint32)) {
	for id, n := range g.all() {
		if n.slot == slotID && gone(n) {
			lose(id)
		}
	}
}

// unlist removes a node that a complete list does not show. With a definition, its objects are
// known to be gone.
func (g *Graph) unlist(id uint32) {
	if n := g.nodes.at(id); g.slots[n.slot].GroupResource() == definitions {
		g.slots[g.slotIDs[schema.ParseGroupResource(n.name)]].hidden = nil
	}
	g.lose(id)
}

// lose removes a node that is not shown any more, which proves nothing. Only an owner that orphaned
// its dependents when it was last seen is settled: a lookup would find it absent, but not how it
// went.
func (g *Graph) lose(id uint32) {
	if g.leavesOrphans(id) {
		g.settle(id, true, 0)
	}
	g.remove(id)
}

func (ev Unlisted) apply(g *Graph) {
	if id := g.nodeIn(ev.Kind, ev.UID); id != 0 {
		g.unlist(id)
		g.incompleteChanged()
	}
}

func (ev ListFailed) apply(g *Graph) {
	s := &g.slots[g.slotOf(ev.Kind)]
	if s.state == Synced || s.state == Behind || s.state == Unwatched {
		return
	}
	s.state, s.reason = Failing, ev.Reason
	if ev.Forbidden {
		s.state = Forbidden
	}
	g.incompleteChanged()
}

func (ev ListSlow) apply(g *Graph) {
	s := &g.slots[g.slotOf(ev.Kind)]
	if s.state != Listing {
		return
	}
	s.state, s.reason = Slow, ev.Reason
	g.incompleteChanged()
}

func (ev FellBehind) apply(g *Graph) {
	s := &g.slots[g.slotOf(ev.Kind)]
	if s.state == Synced || s.state == Behind {
		s.state, s.reason = Behind, ev.Reason
		g.incompleteChanged()
	}
}

func (ev Stopped) apply(g *Graph) {
	slotID := g.slotOf(ev.Kind)
	s := &g.slots[slotID]
	g.hideDependents(slotID)
	g.sweep(slotID, func(*node) bool { return true }, g.lose)
	s.state, s.reason = Unwatched, ""
	if s.served && s.Collected {
		s.state = Listing // stopped to be started again
	}
	g.incompleteChanged()
}
