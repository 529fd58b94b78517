package graph

import "k8s.io/apimachinery/pkg/types"

// tombstones holds the uids of objects that went, and the kind that showed each: one uid may stand
// under two kinds. It is bounded, and forgets the oldest first.
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
	// maxOrphaned bounds the owners that were deleted with orphan. A dependent that is seen only
	// afterwards is released instead of collected, unless so many other owners were deleted with
	// orphan in between. The uids take about 5 MB.
	maxOrphaned = 1 << 16
	// maxRecentlyDeleted bounds the objects whose deletion the watch showed, so that a reference
	// written after it is known to be dangling. What is forgotten is in doubt. It takes about 2 MB.
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

// slotOf returns the kind of which an object with this uid went last.
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
		return // no object has it, and a tombstone with an empty text stands for a key
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
