package graph

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestIndexFindsWhatItHoldsAndKeepsRoomForThat, when most of many keys have gone.
func TestIndexFindsWhatItHoldsAndKeepsRoomForThat(t *testing.T) {
	const most, stay = 600_000, 10
	x := newIndex[uint64]()
	idOf := func(k uint64) uint32 { return uint32(k) + 1 }
	find := func(k uint64) uint32 { return x.get(k, func(id uint32) bool { return id == idOf(k) }) }
	room := func() (n int) {
		for i := range x.shards {
			n += cap(x.shards[i].slots)
		}
		return n
	}
	for k := range uint64(most) {
		if find(k) != 0 {
			t.Fatalf("key %d is found before it is there", k)
		}
		x.set(k, idOf(k))
	}
	full := room()
	for k := range uint64(most) {
		if find(k) != idOf(k) {
			t.Fatalf("key %d: %d", k, find(k))
		}
	}
	for k := range uint64(most - stay) {
		x.drop(k, idOf(k))
	}
	if full > 3*most || room() > leastRoom<<shardBits+8*stay { // a shard has the least, or at most eight slots for a key
		t.Errorf("it had %d slots for %d keys, and has %d for %d", full, most, room(), stay)
	}
	for k := range uint64(most) {
		if there := k >= most-stay; (find(k) != 0) != there {
			t.Fatalf("key %d: found %t, there %t", k, !there, there)
		}
	}
	if x.len() != stay {
		t.Errorf("%d keys are counted", x.len())
	}
}

// TestKeysThatCollideAreFound: many have the same hash, or one whose slot is taken, and they come
// and go in any order.
func TestKeysThatCollideAreFound(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 0))
	for round := range 200 {
		var s shard
		there := map[uint32]uint32{} // id → hash
		hashes := 1 + r.Uint32N(40)
		for range 500 {
			id := 1 + r.Uint32N(60)
			if hash, ok := there[id]; ok {
				s.drop(indexed{hash, id})
				delete(there, id)
			} else {
				there[id] = r.Uint32N(hashes) - hashes/2 // slots are counted around
				s.set(indexed{there[id], id})
			}
			for id := uint32(1); id <= 60; id++ {
				hash, ok := there[id]
				if got := s.get(hash, func(other uint32) bool { return other == id }); (got == id) != ok {
					t.Fatalf("seed %d, round %d: id %d is there: %t; found: %d", seed, round, id, ok, got)
				}
			}
		}
		if s.used != len(there) {
			t.Fatalf("seed %d, round %d: %d of %d are counted", seed, round, s.used, len(there))
		}
	}
}
