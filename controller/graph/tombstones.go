package graph

import "k8s.io/apimachinery/pkg/types"

// tombstones holds the uids of objects that went, and the kind that showed each: one uid may stand
// under two kinds. It is bounded, and forgets the oldest first.
type tombstones struct {
	slots map[types.UID]uint32 // the kind of which an object with this uid went last
	ring  []types.UID
	next  int
	most  int
}

const (
	// maxOrphaned bounds the owners that were deleted with orphan. A dependent that is seen only
	// afterwards is released instead of collected, unless so many other owners were deleted with
	// orphan in between. The uids take about 8 MB.
	maxOrphaned = 1 << 16
	// maxRecentlyDeleted bounds the objects whose deletion the watch showed, so that a reference
	// written after it is known to be dangling. What is forgotten is in doubt. It takes about 2 MB.
	maxRecentlyDeleted = 1 << 14
)

func newTombstones(most int) tombstones {
	return tombstones{slots: map[types.UID]uint32{}, most: most}
}

func (t *tombstones) empty() bool { return len(t.ring) == 0 }

func (t *tombstones) has(uid types.UID) bool {
	_, there := t.slots[uid]
	return there
}

// slotOf returns the kind of which an object with this uid went last.
func (t *tombstones) slotOf(uid types.UID) (slot uint32, there bool) {
	slot, there = t.slots[uid]
	return slot, there
}

func (t *tombstones) add(slot uint32, uid types.UID) {
	if uid == "" {
		return // no object has it
	}
	known := t.has(uid)
	t.slots[uid] = slot
	switch {
	case known:
	case len(t.ring) < t.most:
		t.ring = append(t.ring, uid)
	default:
		delete(t.slots, t.ring[t.next])
		t.ring[t.next] = uid
		t.next = (t.next + 1) % t.most
	}
}
