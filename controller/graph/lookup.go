package graph

import (
	"maps"
	"slices"
)

func (g *Graph) park(id uint32, on bool) {
	if on {
		g.claims.parked[id] = struct{}{}
		g.claims.at(id).since = 0
	} else if len(g.claims.parked) > 0 {
		delete(g.claims.parked, id)
		delete(g.claims.reason, id)
	}
}

func (g *Graph) setLooked(id uint32, to looked, reason string) {
	c := g.claims.at(id)
	c.looked = to
	g.park(id, to == lookedFailed || to == lookedPresent)
	if reason != "" {
		g.claims.reason[id] = reason
	}
	if to == lookedPresent || to == lookedAbsent {
		c.tries = 0
	}
}

func (g *Graph) forgetLook(id uint32) {
	g.changeClaim(id, func(*claim) { g.setLooked(id, lookedNot, "") })
}

// claimValue is the claim as the world outside sees it.
func (g *Graph) claimValue(id uint32) Claim {
	c := g.claims.at(id)
	k := g.types.val(c.typ)
	s := &g.slots[g.typeInfos[c.typ].slot]
	return Claim{
		APIVersion: k.apiVersion, Kind: k.kind, Namespace: g.namespaces.val(c.namespace), Name: c.name, UID: g.uidOf(c.entry),
		Resource: s.GroupResource(), Namespaced: s.Namespaced, Lists: s.lists,
	}
}

// alike calls f for every claim that the answer to v's lookup also answers: same uid, same kind
// whatever the version, same place.
func (g *Graph) alike(v Claim, f func(id uint32, c *claim)) {
	entryID := g.find(v.UID)
	if entryID == 0 {
		return
	}
	slotID := g.slotIDs[v.Resource]
	for id := g.entries.at(entryID).claim; id != 0; id = g.claims.at(id).next {
		c := g.claims.at(id)
		t := g.typeInfos[c.typ]
		if c.name == v.Name && t.slot == slotID && t.served && !t.ambiguous &&
			(!v.Namespaced || g.namespaces.val(c.namespace) == v.Namespace) {
			f(id, c)
		}
	}
}

func (g *Graph) looking(v Claim) {
	g.alike(v, func(id uint32, c *claim) {
		if c.looked == lookedNot {
			g.changeClaim(id, func(c *claim) { c.looked = lookedNow })
		}
	})
}

// answer takes in what a lookup said. A deletion that the watch showed in the meantime is final, and
// an answer from before the last list says nothing about presence now.
func (g *Graph) answer(ev Looked) {
	g.alike(ev.Claim, func(id uint32, c *claim) {
		if c.looked == lookedAbsent {
			return
		}
		if c.owner != 0 {
			c.looked = lookedNot // the watch knows better
			return
		}
		to, reason := lookedPresent, ""
		switch {
		case ev.Answer == Absent:
			to = lookedAbsent
			c.orphaned = g.orphaned.has(ev.Claim.UID)
		case ev.Answer == Unanswered:
			to, reason = lookedFailed, ev.Reason
			c.tries = min(c.tries+1, 7)
		case ev.Claim.Lists != g.slots[g.typeInfos[c.typ].slot].lists:
			to = lookedNot
		}
		g.changeClaim(id, func(*claim) { g.setLooked(id, to, reason) })
	})
}

// recheck is one round: what failed is tried again, the later the more often it failed; what was found
// by a lookup alone is asked again. Also in a kind that is watched: the answer may have come after the
// watch had shown the owner come and go, when nobody made the claim.
func (g *Graph) recheck(round uint64) {
	for _, id := range slices.Sorted(maps.Keys(g.claims.parked)) {
		c := g.claims.at(id)
		after := uint8(64)
		if c.looked == lookedFailed {
			after = 1 << (c.tries - 1)
		}
		if c.since++; c.since >= after {
			g.forgetLook(id)
		}
	}
	if round%64 == 0 {
		g.giveUpAccepted()
	}
}
