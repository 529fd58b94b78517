package graph

import "k8s.io/apimachinery/pkg/types"

// tombstones remembers uids of objects that went, and the kind that showed it: one uid may stand
// under two kinds. Bounded: the oldest are forgotten first.
type tombstones struct {
	keys         map[key]uint32       // the slot of the kind
	nonCanonical map[types.UID]uint32 // the same for uids that are no UUIDs
	ring         []tombstone
	next         int
	most         int
}

// tombstone is a uid: its key, or the text of one that is no UUID.
type tombstone struct {
	key          key
	nonCanonical types.UID
}

const (
	// maxOrphaned: owners that were deleted with orphan, so that a dependent that is seen only
	// afterwards is released instead of collected. About 5 MB of uids. A dependent would have to be
	// seen later than so many further orphaning deletions after its owner's.
	maxOrphaned = 1 << 16
	// maxRecentlyDeleted: objects whose deletion the watch showed, so that a reference which is
	// written after it is known for what it is. About 2 MB; what is forgotten is in doubt.
	maxRecentlyDeleted = 1 << 14
)

func newTombstones(most int) tombstones {
	return tombstones{keys: map[key]uint32{}, nonCanonical: map[types.UID]uint32{}, most: most}
}

func (t *tombstones) empty() bool { return len(t.ring) == 0 }

func (t *tombstones) has(uid types.UID) bool {
	_, there := t.slotOf(uid)
	return there
}

// slotOf is the kind of which an object with this uid went last.
func (t *tombstones) slotOf(uid types.UID) (slot uint32, there bool) {
	if k, ok := parseKey(uid); ok {
		slot, there = t.keys[k]
		return slot, there
	}
	slot, there = t.nonCanonical[uid]
	return slot, there
}

func (t *tombstones) add(slot uint32, uid types.UID) {
	if uid == "" {
		return // it is of no object, and a tombstone without text is that of a key
	}
	before := len(t.keys) + len(t.nonCanonical)
	var one tombstone
	var canonical bool
	if one.key, canonical = parseKey(uid); canonical {
		t.keys[one.key] = slot
	} else {
		one.nonCanonical = uid
		t.nonCanonical[uid] = slot
	}
	if len(t.keys)+len(t.nonCanonical) == before {
		return // it was there
	}
	if len(t.ring) < t.most {
		t.ring = append(t.ring, one)
		return
	}
	if oldest := t.ring[t.next]; oldest.nonCanonical != "" {
		delete(t.nonCanonical, oldest.nonCanonical)
	} else {
		delete(t.keys, oldest.key)
	}
	t.ring[t.next] = one
	t.next = (t.next + 1) % t.most
}
