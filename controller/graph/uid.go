package graph

import (
	"encoding/hex"

	"k8s.io/apimachinery/pkg/types"
)

// key is a canonical UUID in 16 bytes. Almost every uid is one; the others are kept as strings.
type key [16]byte

// hyphens of a canonical UUID: 8-4-4-4-12 lower-case hexadecimal digits.
func isHyphen(i int) bool { return i == 8 || i == 13 || i == 18 || i == 23 }

// parseKey tells whether uid is a UUID exactly as the key would be printed again.
func parseKey(uid types.UID) (k key, ok bool) {
	if len(uid) != 36 {
		return k, false
	}
	nibble := 0
	for i := 0; i < 36; i++ {
		c := uid[i]
		switch {
		case isHyphen(i):
			if c != '-' {
				return key{}, false
			}
			continue
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		default:
			return key{}, false
		}
		k[nibble/2] = k[nibble/2]<<4 | c
		nibble++
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

// entry is all that is known under one uid: the objects that carry it (one, unless two APIs show the
// same object) and the claims that name it. An entry without either does not exist.
type entry struct {
	key   key
	node  uint32 // first of the list through node.next
	claim uint32 // first of the list through claim.next
	odd   bool   // the uid is not a canonical UUID: it is in Graph.oddUIDs
}

// find returns the entry of a uid, 0 if there is none.
func (g *Graph) find(uid types.UID) uint32 {
	if k, ok := parseKey(uid); ok {
		return g.byKey[k]
	}
	return g.byOdd[uid]
}

// enter returns the entry of a uid and makes it if need be.
func (g *Graph) enter(uid types.UID) uint32 {
	k, canonical := parseKey(uid)
	if canonical {
		if id := g.byKey[k]; id != 0 {
			return id
		}
	} else if id := g.byOdd[uid]; id != 0 {
		return id
	}
	id := g.entries.alloc()
	e := g.entries.at(id)
	if canonical {
		e.key = k
		g.byKey[k] = id
	} else {
		e.odd = true
		g.byOdd[uid] = id
		g.oddUIDs[id] = uid
	}
	return id
}

// leave forgets an entry that holds nothing any more.
func (g *Graph) leave(id uint32) {
	e := g.entries.at(id)
	if e.node != 0 || e.claim != 0 {
		return
	}
	if e.odd {
		delete(g.byOdd, g.oddUIDs[id])
		delete(g.oddUIDs, id)
	} else {
		delete(g.byKey, e.key)
	}
	g.entries.release(id)
}

func (g *Graph) uidOf(entryID uint32) types.UID {
	if e := g.entries.at(entryID); !e.odd {
		return e.key.uid()
	}
	return g.oddUIDs[entryID]
}
