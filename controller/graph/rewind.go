package graph

import "cmp"

// History returns how often the API server's history has gone back.
func (g *Graph) History() uint32 { return g.history }

// apply forgets everything that was seen. Until every kind has been listed again, only lookups are
// made.
func (ev Rewound) apply(g *Graph) {
	for id := range g.all() {
		g.remove(id)
	}
	g.orphaned, g.recentlyDeleted, g.remembered = newTombstones(maxOrphaned), newTombstones(maxRecentlyDeleted),
		newTombstones(MostRemembered)
	g.history++
	g.rewound = cmp.Or(ev.Reason, "the API server's history went back")
	for i := range g.slots {
		s := &g.slots[i]
		if s.state == Unwatched {
			continue
		}
		s.state, s.reason = Unwatched, ""
		if s.served && s.Collected {
			s.state = Listing
		}
	}
	g.incompleteChanged()
}

// apply forgets which owners of one kind are absent, and all lookups under way: an answer may
// be of the old storage. It does not forget which owners orphaned their dependents, or these would
// be collected if the owner is not there again.
func (ev KindRewound) apply(g *Graph) {
	slotID := g.slotOf(ev.Kind)
	g.history++
	g.recentlyDeleted, g.remembered = newTombstones(maxRecentlyDeleted), newTombstones(MostRemembered)
	g.claims.each(func(id uint32, c *claim) {
		if c.looked == lookedNow || c.looked != lookedNot && g.typeInfos[c.typ].slot == slotID {
			delete(g.ended, id)
			g.forgetLookup(id)
		}
	})
}

// relisted ends a rewind: everything is decided again.
func (g *Graph) relisted() {
	g.rewound = ""
	for id, n := range g.all() {
		if !g.quiet(n) {
			g.mark(id)
		}
	}
}

// Rewinding returns why everything is being listed again; "" if it is not.
func (g *Graph) Rewinding() string { return g.rewound }
