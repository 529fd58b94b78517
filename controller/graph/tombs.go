package graph

import "k8s.io/apimachinery/pkg/types"

// tombs remembers owners that were deleted with orphan, so that a dependent that is seen only
// afterwards is let go instead of collected. Bounded: the oldest are forgotten first.
type tombs struct {
	set  map[types.UID]struct{}
	ring []types.UID
	next int
}

// maxTombs is about 10 MB of uids. A dependent would have to be seen later than so many further
// orphaning deletions after its owner's.
const maxTombs = 1 << 16

func newTombs() tombs { return tombs{set: map[types.UID]struct{}{}} }

func (t *tombs) has(uid types.UID) bool {
	_, ok := t.set[uid]
	return ok
}

func (t *tombs) add(uid types.UID) {
	if t.has(uid) {
		return
	}
	if len(t.ring) < maxTombs {
		t.ring = append(t.ring, uid)
	} else {
		delete(t.set, t.ring[t.next])
		t.ring[t.next] = uid
		t.next = (t.next + 1) % maxTombs
	}
	t.set[uid] = struct{}{}
}
