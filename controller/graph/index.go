package graph

// index finds ids by keys. A map of Go never shrinks; this one gives back what it does not need any more.
type index[K comparable] struct {
	ids  map[K]uint32
	peak int // how many there were at most since it was made
}

// mostRoom is for how many keys an index keeps room at least.
const mostRoom = 1 << 15

func newIndex[K comparable]() index[K] { return index[K]{ids: map[K]uint32{}} }

func (x *index[K]) get(k K) uint32 { return x.ids[k] }

func (x *index[K]) set(k K, id uint32) {
	x.ids[k] = id
	x.peak = max(x.peak, len(x.ids))
}

// drop forgets a key. When few are left of many, they move to a smaller map: a step for each eighth one that went.
func (x *index[K]) drop(k K) {
	delete(x.ids, k)
	if x.peak <= mostRoom || len(x.ids) >= x.peak/8 {
		return
	}
	ids := make(map[K]uint32, len(x.ids))
	for k, id := range x.ids {
		ids[k] = id
	}
	x.ids, x.peak = ids, len(ids)
}
