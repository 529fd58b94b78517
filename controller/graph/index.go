package graph

import "hash/maphash"

// index finds ids by keys. It holds ids and hashes only: the keys are where the ids lead, and the
// caller compares them. It takes half the memory of a Go map or less, and shrinks. It has many
// shards, so that none takes long to grow.
type index[K comparable] struct {
	seed   maphash.Seed // clients choose the uids of references, and must not know what collides
	shards []shard
}

const (
	shardBits = 8
	leastRoom = 8 // slots of a shard that ever had a key
)

func newIndex[K comparable]() index[K] {
	return index[K]{seed: maphash.MakeSeed(), shards: make([]shard, 1<<shardBits)}
}

// at returns the shard of a key, and its hash there.
func (x *index[K]) at(k K) (*shard, uint32) {
	h := maphash.Comparable(x.seed, k)
	return &x.shards[h>>(64-shardBits)], uint32(h)
}

// get returns the id of a key, 0 if there is none. is reports whether an id belongs to the key.
func (x *index[K]) get(k K, is func(id uint32) bool) uint32 {
	s, hash := x.at(k)
	return s.get(hash, is)
}

// set adds a key that is not there.
func (x *index[K]) set(k K, id uint32) {
	s, hash := x.at(k)
	s.set(indexed{hash, id})
}

// drop forgets a key that is there.
func (x *index[K]) drop(k K, id uint32) {
	s, hash := x.at(k)
	s.drop(indexed{hash, id})
}

func (x *index[K]) len() (n int) {
	for i := range x.shards {
		n += x.shards[i].used
	}
	return n
}

// shard is a hash table with linear probing. The number of its slots is a power of two, and at
// least a quarter of them are free.
type shard struct {
	slots []indexed
	used  int
}

// indexed is an id, never 0, and a part of its key's hash.
type indexed struct{ hash, id uint32 }

// slot returns the slot at a place, modulo their number.
func (s *shard) slot(place uint32) *indexed { return &s.slots[place&uint32(len(s.slots)-1)] }

func (s *shard) get(hash uint32, is func(id uint32) bool) uint32 {
	if s.used == 0 {
		return 0
	}
	for place := hash; ; place++ {
		if one := s.slot(place); one.id == 0 || one.hash == hash && is(one.id) {
			return one.id
		}
	}
}

func (s *shard) set(one indexed) {
	if (s.used+1)*4 > len(s.slots)*3 {
		s.resize(max(leastRoom, 2*len(s.slots)))
	}
	s.put(one)
	s.used++
}

func (s *shard) put(one indexed) {
	place := one.hash
	for s.slot(place).id != 0 {
		place++
	}
	*s.slot(place) = one
}

func (s *shard) drop(one indexed) {
	free := one.hash
	for *s.slot(free) != one {
		free++
	}
	mask := uint32(len(s.slots) - 1)
	// Up to the next free slot, each moves to where it is found from its hash.
	for place := free + 1; s.slot(place).id != 0; place++ {
		if fromHash := (place - s.slot(place).hash) & mask; fromHash >= (place-free)&mask {
			*s.slot(free), free = *s.slot(place), place
		}
	}
	*s.slot(free) = indexed{}
	s.used--
	if s.used*8 < len(s.slots) && len(s.slots) > leastRoom {
		s.resize(max(leastRoom, len(s.slots)/4))
	}
}

func (s *shard) resize(size int) {
	before := s.slots
	s.slots = make([]indexed, size)
	for _, one := range before {
		if one.id != 0 {
			s.put(one)
		}
	}
}
