package graph_test

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/internal/testkit/script"
)

// TestGraphOfManyThatWentIsRightAndSmall: where most of 60,000 objects come and go three times, in
// any order, what is left is known as before, and memory is near what it was.
func TestGraphOfManyThatWentIsRightAndSmall(t *testing.T) {
	const (
		branches, stay = 600, 40
		// bytes: 157 where no chunk is given back, 56 where they are, most of which is what is remembered
		// of those that went
		mostEach = 90
	)
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 0))
	g := emptyGraph()
	for n := range stay {
		for _, o := range branch(n * branches / stay) {
			g.Apply(graph.Observed{Object: o})
		}
	}
	want, before := script.Dump(g), heapInUse()
	for round := range 3 {
		var comes []*graph.Object
		for n := range branches {
			if n%(branches/stay) != 0 {
				comes = append(comes, branch(n)...)
			}
		}
		if round > 0 {
			r.Shuffle(len(comes), func(i, j int) { comes[i], comes[j] = comes[j], comes[i] })
		}
		for _, o := range comes {
			g.Apply(graph.Observed{Object: o})
		}
		full := heapInUse()
		if err := g.Check(); err != nil {
			t.Fatalf("seed %d, round %d, full: %v", seed, round, err)
		}
		goes := slices.Clone(comes)
		comes = nil
		if round < 2 {
			r.Shuffle(len(goes), func(i, j int) { goes[i], goes[j] = goes[j], goes[i] })
		}
		for _, o := range goes {
			g.Apply(graph.Gone{Kind: o.Kind, UID: o.UID})
		}
		n := len(goes)
		goes = nil
		if err := g.Check(); err != nil {
			t.Fatalf("seed %d, round %d, empty: %v", seed, round, err)
		}
		if have := script.Dump(g); have != want {
			t.Fatalf("seed %d, round %d: what is left is not as it was", seed, round)
		}
		after := heapInUse()
		t.Logf("seed %d, round %d: %d objects: %d kB before, %d with them, %d after",
			seed, round, n, before>>10, full>>10, after>>10)
		if each := (int(after) - int(before)) / n; each > mostEach {
			t.Errorf("seed %d, round %d: %d bytes are held for each object that is gone", seed, round, each)
		}
	}
	runtime.KeepAlive(g)
}

// heapInUse is what is held, in bytes.
func heapInUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
