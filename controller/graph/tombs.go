package graph

import "k8s.io/apimachinery/pkg/types"

// tombs remembers uids of objects that went. Bounded: the oldest are forgotten first.
type tombs struct {
	set  map[types.UID]struct{}
	ring []types.UID
	next int
	most int
}

const (
	// maxOrphaned: owners that were deleted with orphan, so that a dependent that is seen only afterwards
	// is let go instead of collected. About 10 MB of uids. A dependent would have to be seen later than so
	// many further orphaning deletions after its owner's.
	maxOrphaned = 1 << 16
	// maxDeparted: objects whose deletion the watch showed, so that a reference which is written just
	// after it is known for what it is. About 2 MB; what is forgotten is in doubt.
	maxDeparted = 1 << 14
)

func newTombs(most int) tombs { return tombs{set: map[types.UID]struct{}{}, most: most} }

func (t *tombs) has(uid types.UID) bool {
	_, ok := t.set[uid]
	return ok
}

func (t *tombs) add(uid types.UID) {
	if t.has(uid) {
		return
	}
	if len(t.ring) < t.most {
		t.ring = append(t.ring, uid)
	} else {
		delete(t.set, t.ring[t.next])
		t.ring[t.next] = uid
		t.next = (t.next + 1) % t.most
	}
	t.set[uid] = struct{}{}
}
