package graph

import (
	"cmp"
	"maps"
	"slices"
)

// blockedOwners calls f for each owner that a node's references block.
func (g *Graph) blockedOwners(id uint32, f func(owner uint32)) {
	for _, e := range g.nodes.at(id).owners {
		if e.bits&blockTrue != 0 {
			if owner := g.claims.at(e.claim).owner; owner != 0 {
				f(owner)
			}
		}
	}
}

// A search is bounded: a client that may edit a thousand objects can have all of them block each
// other, with a million references. If the search from one object exceeds a bound, so does each
// search that reaches that object.
const (
	mostFollowed = 1_000  // blocking references to objects that pass
	mostLookedAt = 20_000 // references of the objects that are followed
)

// cycle returns the objects that wait for each other with a node, itself included; nil if it is in
// no cycle. A waits for B if B blocks A and A is being deleted foreground; start counts as waiting
// in any case. tooMany is true if a bound was exceeded.
//
// Within the bounds it is exact, where the reference looks one step far and errs both ways (RB
// 5.6).
func (g *Graph) cycle(start uint32) (members map[uint32]bool, tooMany bool) {
	return g.component(start, func(id uint32) bool {
		return id == start || g.nodes.at(id).flags&foreground != 0
	})
}

// component returns the strongly connected component of start among the nodes that pass, following
// blocking references; nil if start is in no cycle. tooMany is true, and members nil, if a bound
// was exceeded.
func (g *Graph) component(start uint32, pass func(uint32) bool) (members map[uint32]bool, tooMany bool) {
	blocks := false
	g.blockedOwners(start, func(uint32) { blocks = true })
	if !blocks {
		return nil, false // whatever else it refers to
	}
	blockedBy := map[uint32][]uint32{} // the references that were followed, backwards
	seen := map[uint32]bool{start: true}
	followed, lookedAt := 0, 0
	for todo := []uint32{start}; len(todo) > 0; {
		id := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if lookedAt += len(g.nodes.at(id).owners); lookedAt > mostLookedAt {
			return nil, true
		}
		g.blockedOwners(id, func(owner uint32) {
			if !pass(owner) {
				return
			}
			followed++
			blockedBy[owner] = append(blockedBy[owner], id)
			if !seen[owner] {
				seen[owner] = true
				todo = append(todo, owner)
			}
		})
		if followed > mostFollowed {
			return nil, true
		}
	}
	if len(blockedBy[start]) == 0 {
		return nil, false
	}
	members = map[uint32]bool{start: true}
	for todo := []uint32{start}; len(todo) > 0; {
		id := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, from := range blockedBy[id] {
			if !members[from] {
				members[from] = true
				todo = append(todo, from)
			}
		}
	}
	return members, false
}

// leads reports whether a node is the one in its cycle that is to unblock: the one with the lowest
// uid. One is enough, and it must not depend on who asks.
func (g *Graph) leads(id uint32, members map[uint32]bool) bool {
	own := g.nodes.at(id)
	uid := g.uidOf(own.entry)
	for m := range members {
		n := g.nodes.at(m)
		if cmp.Or(cmp.Compare(g.uidOf(n.entry), uid), cmp.Compare(n.slot, own.slot)) < 0 {
			return false // one uid may stand under two kinds
		}
	}
	return true
}

// markCycle marks everything that could wait in a cycle through a node. It is called before and
// after each change to the node's blocking references, or to whether they count: no other change
// makes or breaks a cycle. If a bound is exceeded, the node itself is enough: it is in each cycle
// that the change makes, and unblocks.
func (g *Graph) markCycle(id uint32) {
	n := g.nodes.at(id)
	if n.blocking == 0 || len(n.owners) == 0 {
		return // nothing goes through it
	}
	members, tooMany := g.component(id, func(uint32) bool { return true })
	if tooMany { // most often of objects of which none is being deleted
		members, tooMany = g.cycle(id)
	}
	if tooMany {
		g.mark(id)
	}
	for _, m := range slices.Sorted(maps.Keys(members)) {
		g.mark(m)
	}
}
