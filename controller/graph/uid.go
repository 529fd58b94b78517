package graph

import (
	"encoding/hex"
	"iter"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// key is a canonical UUID in 16 bytes. Almost every uid is one; the others are kept as strings.
type key [16]byte

// digits are the offsets of a canonical UUID's bytes: 8-4-4-4-12 lower-case hexadecimal digits.
var digits = [16]uint8{0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34}

// nibbles are the values of digits, 0xff for what is none.
var nibbles = func() (t [256]uint8) {
	for c := range t {
		t[c] = 0xff
	}
	for v, c := range []byte("0123456789abcdef") {
		t[c] = uint8(v)
	}
	return t
}()

// parseKey returns the key of a canonical UUID: one that key.uid prints the same. The table is
// there because lists spend their time here.
func parseKey(uid types.UID) (k key, ok bool) {
	if len(uid) != 36 || uid[8] != '-' || uid[13] != '-' || uid[18] != '-' || uid[23] != '-' {
		return key{}, false
	}
	for i, at := range digits {
		high, low := nibbles[uid[at]], nibbles[uid[at+1]]
		if high|low == 0xff {
			return key{}, false
		}
		k[i] = high<<4 | low
	}
	return k, true
}

func (k key) uid() types.UID {
	var b [36]byte
	hex.Encode(b[0:8], k[0:4])
	b[8] = '-'
	hex.Encode(b[9:13], k[4:6])
	b[13] = '-'
	hex.Encode(b[14:18], k[6:8])
	b[18] = '-'
	hex.Encode(b[19:23], k[8:10])
	b[23] = '-'
	hex.Encode(b[24:36], k[10:16])
	return types.UID(b[:])
}

// entry is what is known under one uid: the objects that carry it (one, unless two APIs show the
// same object) and the claims that name it. It exists while it has either.
type entry struct {
	key   key    // zero if the uid is no canonical UUID: then it is in Graph.nonCanonicalUIDs
	node  uint32 // first of those through Graph.next
	claim uint32 // first of the list through claim.next
}

// find returns the entry of a uid, 0 if there is none.
func (g *Graph) find(uid types.UID) uint32 {
	if k, ok := parseKey(uid); ok {
		return g.findKey(k)
	}
	return g.byNonCanonical[uid]
}

func (g *Graph) findKey(k key) uint32 {
	return g.byKey.get(k, func(id uint32) bool { return g.entries.at(id).key == k })
}

// enter returns the entry of a uid, and makes it if need be.
func (g *Graph) enter(uid types.UID) uint32 {
	k, canonical := parseKey(uid)
	if canonical {
		if id := g.findKey(k); id != 0 {
			return id
		}
	} else if id := g.byNonCanonical[uid]; id != 0 {
		return id
	}
	id := g.entries.alloc()
	if canonical {
		g.entries.at(id).key = k
		g.byKey.set(k, id)
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
		g.byKey.drop(e.key, id)
	}
	g.entries.release(id)
}

func (g *Graph) uidOf(entryID uint32) types.UID {
	if uid, ok := g.nonCanonicalUIDs[entryID]; ok {
		return uid
	}
	return g.entries.at(entryID).key.uid()
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
