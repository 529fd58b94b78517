package graph

import (
	"math/rand/v2"
	"testing"
	"time"
	"unsafe"
)

// TestSlabGivesBackWhatNothingIsLeftOf: values keep their ids whatever comes and goes, and memory
// follows what is in use.
func TestSlabGivesBackWhatNothingIsLeftOf(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 0))
	const most = 20 * chunkSize
	var s slab[uint64]
	have := map[uint32]uint64{}
	var ids []uint32
	add := func() {
		id := s.alloc()
		if _, twice := have[id]; twice || id == 0 || id >= s.next {
			t.Fatalf("seed %d: id %d: in use already: %t, next %d", seed, id, twice, s.next)
		}
		if v := *s.at(id); v != 0 {
			t.Fatalf("seed %d: a new value is %d", seed, v)
		}
		have[id] = r.Uint64() | 1
		*s.at(id) = have[id]
		ids = append(ids, id)
	}
	drop := func(i int) {
		s.release(ids[i])
		delete(have, ids[i])
		ids[i] = ids[len(ids)-1]
		ids = ids[:len(ids)-1]
	}
	held := func() (n int) {
		for _, c := range s.rooms {
			if !c.given {
				n++
			}
		}
		return n
	}
	check := func(when string) {
		t.Helper()
		for id := uint32(1); id < s.next; id++ {
			if *s.at(id) != have[id] {
				t.Fatalf("seed %d, %s: value %d is %d, want %d", seed, when, id, *s.at(id), have[id])
			}
		}
		if s.used != len(have) {
			t.Errorf("seed %d, %s: %d are in use, want %d", seed, when, s.used, len(have))
		}
	}
	for round := range 4 {
		for len(ids) < most {
			add()
			if r.IntN(3) == 0 {
				drop(r.IntN(len(ids)))
			}
		}
		check("full")
		if want := most/chunkSize + 2; held() > want {
			t.Errorf("seed %d: %d chunks for %d values, want %d at most", seed, held(), len(ids), want)
		}
		for len(ids) > 0 { // at random, or those first that came last
			i := len(ids) - 1
			if round%2 == 0 {
				i = r.IntN(len(ids))
			}
			drop(i)
			if r.IntN(5) == 0 {
				add()
			}
		}
		check("empty")
		if held() > 2 {
			t.Errorf("seed %d: %d chunks are held for nothing", seed, held())
		}
	}
	if s.next > 2*most {
		t.Errorf("seed %d: ids up to %d for %d values: those that were given back are not used again", seed, s.next, most)
	}
	t.Logf("seed %d: 4 rounds of %d values", seed, most)
}

// TestOneValueThatComesAndGoesMakesNoChunks: it would be the cost of every event about a single
// object.
func TestOneValueThatComesAndGoesMakesNoChunks(t *testing.T) {
	var s slab[uint64]
	for range 2*chunkSize - 1 { // the first two chunks are full
		s.alloc()
	}
	allocs := testing.AllocsPerRun(1000, func() { s.release(s.alloc()) })
	if allocs > 0 {
		t.Errorf("%v allocations each time", allocs)
	}
}

// TestNodesAndEntriesStaySmall: there are as many as objects.
func TestNodesAndEntriesStaySmall(t *testing.T) {
	if n, e := unsafe.Sizeof(node{}), unsafe.Sizeof(entry{}); n > 80 || e > 24 {
		t.Errorf("a node takes %d bytes, and an entry %d", n, e)
	}
}
