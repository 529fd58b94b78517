package graph

import "k8s.io/apimachinery/pkg/types"

// tombs remembers uids of objects that went. Bounded: the oldest are forgotten first.
type tombs struct {
	keys map[key]struct{}
	odd  map[types.UID]struct{} // those that are no UUIDs
	ring []tomb
	next int
	most int
}

// tomb is a uid: its key, or the text of one that is no UUID.
type tomb struct {
	key key
	odd types.UID
}

const (
	// maxOrphaned: owners that were deleted with orphan, so that a dependent that is seen only afterwards
	// is let go instead of collected. About 5 MB of uids. A dependent would have to be seen later than so
	// many further orphaning deletions after its owner's.
	maxOrphaned = 1 << 16
	// maxDeparted: objects whose deletion the watch showed, so that a reference which is written just
	// after it is known for what it is. About 2 MB; what is forgotten is in doubt.
	maxDeparted = 1 << 14
)

func newTombs(most int) tombs {
	return tombs{keys: map[key]struct{}{}, odd: map[types.UID]struct{}{}, most: most}
}

func (t *tombs) empty() bool { return len(t.ring) == 0 }

func (t *tombs) has(uid types.UID) bool {
	if k, ok := parseKey(uid); ok {
		_, there := t.keys[k]
		return there
	}
	_, there := t.odd[uid]
	return there
}

func (t *tombs) add(uid types.UID) {
	if uid == "" {
		return // it is nobody's, and a tomb without text is that of a key
	}
	before := len(t.keys) + len(t.odd)
	var one tomb
	var canonical bool
	if one.key, canonical = parseKey(uid); canonical {
		t.keys[one.key] = struct{}{}
	} else {
		one.odd = uid
		t.odd[uid] = struct{}{}
	}
	if len(t.keys)+len(t.odd) == before {
		return // it was there
	}
	if len(t.ring) < t.most {
		t.ring = append(t.ring, one)
		return
	}
	if oldest := t.ring[t.next]; oldest.odd != "" {
		delete(t.odd, oldest.odd)
	} else {
		delete(t.keys, oldest.key)
	}
	t.ring[t.next] = one
	t.next = (t.next + 1) % t.most
}
