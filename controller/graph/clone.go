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
	c.entries, c.nodes, c.claims = g.entries.clone(), g.cloneNodes(), g.claims.clone()
	c.namespaces, c.finalizers, c.types = g.namespaces.clone(), g.finalizers.clone(), g.types.clone()
	c.typeInfos, c.slots, c.slotIDs = slices.Clone(g.typeInfos), slices.Clone(g.slots), maps.Clone(g.slotIDs)
	c.textVersions, c.rulings, c.causes = maps.Clone(g.textVersions), maps.Clone(g.rulings), maps.Clone(g.causes)
	c.protected, c.unfollowed = maps.Clone(g.protected), maps.Clone(g.unfollowed)
	c.ending, c.ended = maps.Clone(g.ending), maps.Clone(g.ended)
	c.hiddenDependents = maps.Clone(g.hiddenDependents)
	c.orphaned, c.recentlyDeleted, c.remembered = g.orphaned.clone(), g.recentlyDeleted.clone(), g.remembered.clone()
	c.draining, c.changed = maps.Clone(g.draining), maps.Clone(g.changed)
	c.dirty = slices.Clone(g.dirty)
	c.inventories = make(map[uint32]*inventory, len(g.inventories))
	for ns, inv := range g.inventories {
		c.inventories[ns] = inv.clone()
	}
	return &c // g.resolved is replaced as a whole, never changed
}

// cloneNodes copies the nodes, and their references into one allocation.
func (g *Graph) cloneNodes() slab[node] {
	s := g.nodes.clone()
	all := 0
	s.each(func(n *node) { all += len(n.owners) })
	room := make([]edge, 0, all)
	s.each(func(n *node) {
		if len(n.owners) > 0 {
			n.owners, room = into(room, n.owners)
		}
	})
	return s
}

func (t *claimTable) clone() claimTable {
	to := claimTable{
		slab: t.slab.clone(), byKey: t.byKey.clone(), byVerdict: t.byVerdict, agenda: t.agenda.clone(),
		reason: maps.Clone(t.reason),
	}
	all := 0
	to.slab.each(func(c *claim) { all += len(c.dependents) })
	room := make([]dependent, 0, all)
	to.slab.each(func(c *claim) {
		if len(c.dependents) > 0 {
			c.dependents, room = into(room, c.dependents)
		}
	})
	return to
}

// into appends a copy of list to room, which must be large enough. Appending to the copy later
// allocates it anew.
func into[T any](room, list []T) (copied, rest []T) {
	from := len(room)
	room = append(room, list...)
	return room[from:len(room):len(room)], room
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

// each calls f for all values, and for some that are not in use: those are zero, and f must not
// write them.
func (s *slab[T]) each(f func(*T)) {
	for at, chunk := range s.chunks {
		if s.rooms[at].used == 0 {
			continue
		}
		for i := range chunk {
			f(&chunk[i])
		}
	}
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
