package graph

// setLooked stores an answer, and when to ask again: later each time it is the same.
func (g *Graph) setLooked(id uint32, to looked, reason string) {
	c := g.claims.at(id)
	c.looked, c.cause = to, 0
	g.noRetry(id)
	switch to {
	case lookedFailed, lookedDenied:
		c.tries = min(c.tries+1, 100)
		c.due = g.claims.agenda.add(id, after(firstRetry, mostRetry, c.tries))
		g.claims.reason[id] = reason
	case lookedPresent:
		c.tries, c.finds = 0, min(c.finds+1, 100)
		c.due = g.claims.agenda.add(id, after(firstRecheck, mostRecheck, c.finds))
	case lookedAbsent:
		c.tries = 0
	}
}

// noRetry takes a claim off the agenda.
func (g *Graph) noRetry(id uint32) {
	c := g.claims.at(id)
	if c.due != 0 {
		c.due = 0
		delete(g.claims.reason, id)
	}
}

func (g *Graph) forgetLookup(id uint32) {
	g.setLooked(id, lookedNot, "")
	g.rejudge(id)
}

// claimValue returns a claim as callers see it.
func (g *Graph) claimValue(id uint32) Claim {
	c := g.claims.at(id)
	k := g.types.val(c.typ)
	s := &g.slots[g.typeInfos[c.typ].slot]
	return Claim{
		APIVersion: k.apiVersion, Kind: k.kind,
		Namespace: g.namespaces.val(c.namespace), Name: c.name, UID: g.uidOf(c.entry),
		Resource: s.GroupResource(), Namespaced: s.Namespaced, Lists: s.lists, History: g.history,
	}
}

// alike calls f for every claim that a lookup of v answers, too: same uid, same kind in any
// version, same place.
func (g *Graph) alike(v Claim, f func(id uint32, c *claim)) {
	slotID := g.slotIDs[v.Resource]
	for id, c := range g.claimsOn(g.find(v.UID)) {
		t := g.typeInfos[c.typ]
		if c.name == v.Name && t.slot == slotID && t.served && !t.ambiguous &&
			(!v.Namespaced || g.namespaces.val(c.namespace) == v.Namespace) {
			f(id, c)
		}
	}
}

func (ev LookupStarted) apply(g *Graph) {
	if ev.Claim.History != g.history {
		return
	}
	g.alike(ev.Claim, func(id uint32, c *claim) {
		if c.looked == lookedNot {
			c.looked = lookedNow
			g.rejudge(id)
		}
	})
}

// apply takes in the answer to a lookup. A deletion that the watch has shown meanwhile is final.
// That an owner was present before the last list says nothing about now.
func (ev LookupAnswered) apply(g *Graph) {
	if ev.Claim.History != g.history {
		return // of another history
	}
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
		case ev.Answer == Unanswered || ev.Answer == Denied:
			if to, reason = lookedFailed, ev.Reason; ev.Answer == Denied {
				to = lookedDenied
			}
		case ev.Claim.Lists != g.slots[g.typeInfos[c.typ].slot].lists:
			to = lookedNot
		}
		if g.setLooked(id, to, reason); to == lookedAbsent {
			c.cause = g.causeOfAbsence(c)
		}
		g.rejudge(id)
	})
}

// apply begins a round: failed lookups, and owners that only a lookup found, are asked again.
// That includes kinds that are watched: the watch may have shown the owner come and go before the
// answer arrived, when no reference made the claim.
func (ev Recheck) apply(g *Graph) {
	agenda := &g.claims.agenda
	for _, id := range agenda.next(
		func(id uint32) bool { due := g.claims.at(id).due; return due != 0 && due <= agenda.round },
		func(id uint32) bool { return g.claims.at(id).looked == lookedPresent },
	) {
		if g.claims.at(id).due != 0 { // not there twice
			g.forgetLookup(id)
		}
	}
	if ev.Round%64 == 0 {
		g.giveUpAccepted()
	}
}
