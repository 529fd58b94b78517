package graph

import (
	"maps"
	"slices"
)

// Clone returns an independent copy of a graph. It costs far less than showing everything to a new
// one, since nothing is interpreted.
func (g *Graph) Clone() *Graph {
	c := *g
	c.byKey, c.byNonCanonical = g.byKey.clone(), maps.Clone(g.byNonCanonical)
	c.nonCanonicalUIDs, c.siblings = maps.Clone(g.nonCanonicalUIDs), maps.Clone(g.siblings)
	c.entries, c.nodes = g.entries.clone(), g.nodes.clone()
	for _, n := range c.all() {
		n.owners = slices.Clone(n.owners)
	}
	c.claims.slab, c.claims.agenda = g.claims.clone(), g.claims.agenda.clone()
	c.claims.byKey, c.claims.reason = g.claims.byKey.clone(), maps.Clone(g.claims.reason)
	c.claims.each(func(_ uint32, cl *claim) { cl.dependents = slices.Clone(cl.dependents) })
	c.namespaces, c.finalizers, c.types = g.namespaces.clone(), g.finalizers.clone(), g.types.clone()
	c.typeInfos, c.slots, c.slotIDs = slices.Clone(g.typeInfos), slices.Clone(g.slots), maps.Clone(g.slotIDs)
	for i := range c.slots {
		c.slots[i].hidden = maps.Clone(c.slots[i].hidden)
	}
	c.textVersions, c.rulings, c.causes = maps.Clone(g.textVersions), maps.Clone(g.rulings), maps.Clone(g.causes)
	c.protected, c.unfollowed = maps.Clone(g.protected), maps.Clone(g.unfollowed)
	c.ending, c.ended = maps.Clone(g.ending), maps.Clone(g.ended)
	c.orphaned, c.recentlyDeleted, c.remembered = g.orphaned.clone(), g.recentlyDeleted.clone(), g.remembered.clone()
	c.draining, c.changed = maps.Clone(g.draining), maps.Clone(g.changed)
	c.dirty = slices.Clone(g.dirty)
	c.inventories = make(map[uint32]*inventory, len(g.inventories))
	for ns, inv := range g.inventories {
		c.inventories[ns] = inv.clone()
	}
	return &c // g.resolved is replaced as a whole, never changed
}

// clone copies values as they are, and not what they point to.
func (s *slab[T]) clone() slab[T] {
	c := *s
	c.chunks = make([][]T, len(s.chunks))
	c.rooms = slices.Clone(s.rooms)
	for at, r := range c.rooms {
		c.rooms[at].freed = slices.Clone(r.freed)
		if c.chunks[at] = s.zeros; !r.given {
			c.chunks[at] = slices.Clone(s.chunks[at])
		}
	}
	c.open, c.given = slices.Clone(s.open), slices.Clone(s.given)
	return c
}

func (x *index[K]) clone() index[K] {
	c := index[K]{seed: x.seed, shards: slices.Clone(x.shards)}
	for i := range c.shards {
		c.shards[i].slots = slices.Clone(c.shards[i].slots)
	}
	return c
}

func (in *interner[K]) clone() interner[K] {
	return interner[K]{ids: maps.Clone(in.ids), vals: slices.Clone(in.vals), free: slices.Clone(in.free)}
}

func (t *tombstones) clone() tombstones {
	c := *t
	c.slots, c.ring = maps.Clone(t.slots), slices.Clone(t.ring)
	return c
}

func (a *agenda) clone() agenda {
	c := *a
	for i, round := range a.rounds {
		c.rounds[i] = slices.Clone(round)
	}
	for i, line := range a.lines {
		c.lines[i] = slices.Clone(line)
	}
	return c
}

func (inv *inventory) clone() *inventory {
	c := &inventory{kinds: make(map[uint32]*contents, len(inv.kinds)), finalizers: maps.Clone(inv.finalizers)}
	for slotID, of := range inv.kinds {
		all := *of
		all.nodes = slices.Clone(of.nodes)
		c.kinds[slotID] = &all
	}
	return c
}
