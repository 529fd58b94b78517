package graph

import (
	"iter"
	"strings"

	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// canonical returns the UUID that a uid is, if it is one as Kubernetes writes them. Almost every uid
// is, and takes 16 bytes; the others are kept as strings.
func canonical(uid types.UID) (u uuid.UUID, ok bool) {
	if len(uid) != 36 || strings.ToLower(string(uid)) != string(uid) {
		return u, false
	}
	u, err := uuid.Parse(string(uid))
	return u, err == nil
}

// entry is what is known under one uid: the objects that carry it (one, unless two APIs show the
// same object) and the claims that name it. It exists while it has either.
type entry struct {
	uuid  uuid.UUID // zero if the uid is no canonical UUID: then it is in Graph.nonCanonicalUIDs
	node  uint32    // first of those through Graph.next
	claim uint32    // first of the list through claim.next
}

// find returns the entry of a uid, 0 if there is none.
func (g *Graph) find(uid types.UID) uint32 {
	if u, ok := canonical(uid); ok {
		return g.byUUID[u]
	}
	return g.byNonCanonical[uid]
}

// enter returns the entry of a uid, and makes it if need be.
func (g *Graph) enter(uid types.UID) uint32 {
	if id := g.find(uid); id != 0 {
		return id
	}
	id := g.entries.alloc()
	if u, ok := canonical(uid); ok {
		g.entries.at(id).uuid = u
		g.byUUID[u] = id
	} else {
		g.byNonCanonical[uid] = id
		g.nonCanonicalUIDs[id] = uid
	}
	return id
}

// leave removes an entry that holds nothing any more.
func (g *Graph) leave(id uint32) {
	e := g.entries.at(id)
	if e.node != 0 || e.claim != 0 {
		return
	}
	if uid, ok := g.nonCanonicalUIDs[id]; ok {
		delete(g.byNonCanonical, uid)
		delete(g.nonCanonicalUIDs, id)
	} else {
		delete(g.byUUID, e.uuid)
	}
	g.entries.release(id)
}

func (g *Graph) uidOf(entryID uint32) types.UID {
	if uid, ok := g.nonCanonicalUIDs[entryID]; ok {
		return uid
	}
	return types.UID(g.entries.at(entryID).uuid.String())
}

// next returns the node that comes after one of the same uid, 0 if there is none. Few uids have
// two.
func (g *Graph) next(id uint32) uint32 { return g.siblings[id] }

// unlink removes a node from those of its uid.
func (g *Graph) unlink(entryID, id uint32) {
	after := g.next(id)
	delete(g.siblings, id)
	e := g.entries.at(entryID)
	if e.node == id {
		e.node = after
		return
	}
	before := e.node
	for g.next(before) != id {
		before = g.next(before)
	}
	if g.siblings[before] = after; after == 0 {
		delete(g.siblings, before)
	}
}

// nodesOf yields the nodes of an entry. The one that came last is the first.
func (g *Graph) nodesOf(entryID uint32) iter.Seq2[uint32, *node] {
	return func(yield func(uint32, *node) bool) {
		for id := g.entries.at(entryID).node; id != 0 && yield(id, g.nodes.at(id)); {
			id = g.next(id)
		}
	}
}

// claimsOn yields the claims on the uid of an entry.
func (g *Graph) claimsOn(entryID uint32) iter.Seq2[uint32, *claim] {
	return func(yield func(uint32, *claim) bool) {
		for id := g.entries.at(entryID).claim; id != 0; {
			c := g.claims.at(id)
			if !yield(id, c) {
				return
			}
			id = c.next
		}
	}
}

// newest returns the node of a uid that came last, 0 if there is none.
func (g *Graph) newest(uid types.UID) uint32 { return g.entries.at(g.find(uid)).node }

// nodeIn returns the node of a uid in one kind, 0 if there is none.
func (g *Graph) nodeIn(kind schema.GroupResource, uid types.UID) uint32 {
	return g.nodeOf(g.slotIDs[kind], g.find(uid))
}

func (g *Graph) nodeOf(slotID, entryID uint32) uint32 {
	for id, n := range g.nodesOf(entryID) {
		if n.slot == slotID {
			return id
		}
	}
	return 0
}
