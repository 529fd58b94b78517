package graph

import "k8s.io/apimachinery/pkg/types"

// tombstones remembers uids of objects that went, and the kind that showed it: one uid may stand under two kinds. Bounded: the oldest are
// forgotten first.
type tombstones struct {
	slots map[tombstone]uint32
	ring  []tombstone
	next  int
	most  int
}

// tombstone is a uid: its key, or the text of one that is no UUID.
type tombstone struct {
	key          key
	nonCanonical types.UID
}

func tombstoneOf(uid types.UID) tombstone {
	if k, ok := parseKey(uid); ok {
		return tombstone{key: k}
	}
	return tombstone{nonCanonical: uid}
}

const (
	// maxOrphaned: owners that were deleted with orphan, so that a dependent that is seen only afterwards
	// is released instead of collected. About 5 MB of uids. A dependent would have to be seen later than so
	// many further orphaning deletions after its owner's.
	maxOrphaned = 1 << 16
	// maxRecentlyDeleted: objects whose deletion the watch showed, so that a reference which is written
	// after it is known for what it is. About 2 MB; what is forgotten is in doubt.
	maxRecentlyDeleted = 1 << 14
)

func newTombstones(most int) tombstones {
	return tombstones{slots: map[tombstone]uint32{}, most: most}
}

func (t *tombstones) empty() bool { return len(t.ring) == 0 }

func (t *tombstones) has(uid types.UID) bool {
	_, there := t.slots[tombstoneOf(uid)]
	return there
}

// hasOf tells whether it was an object of this kind that went.
func (t *tombstones) hasOf(slot uint32, uid types.UID) bool {
	of, there := t.slots[tombstoneOf(uid)]
	return there && of == slot
}

func (t *tombstones) add(slot uint32, uid types.UID) {
	if uid == "" {
		return // it is of no object
	}
	one, known := tombstoneOf(uid), t.has(uid)
	t.slots[one] = slot
	switch {
	case known:
	case len(t.ring) < t.most:
		t.ring = append(t.ring, one)
	default:
		delete(t.slots, t.ring[t.next])
		t.ring[t.next] = one
		t.next = (t.next + 1) % t.most
	}
}
