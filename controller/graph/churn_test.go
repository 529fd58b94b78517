package graph_test

import (
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/internal/testkit/script"
)

// TestGraphOfManyThatWentIsRight: where most of 60,000 objects come and go three times, in any
// order, what is left is known as before.
func TestGraphOfManyThatWentIsRight(t *testing.T) {
	const branches, stay = 600, 40
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 0))
	g := emptyGraph()
	for n := range stay {
		for _, o := range branch(n * branches / stay) {
			g.Apply(graph.Observed{Object: o})
		}
	}
	want := script.Dump(g)
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
		if err := g.Check(); err != nil {
			t.Fatalf("seed %d, round %d, full: %v", seed, round, err)
		}
		if round < 2 {
			r.Shuffle(len(comes), func(i, j int) { comes[i], comes[j] = comes[j], comes[i] })
		}
		for _, o := range comes {
			g.Apply(graph.Gone{Kind: o.Kind, UID: o.UID})
		}
		if err := g.Check(); err != nil {
			t.Fatalf("seed %d, round %d, empty: %v", seed, round, err)
		}
		if have := script.Dump(g); have != want {
			t.Fatalf("seed %d, round %d: what is left is not as it was", seed, round)
		}
	}
}

// heapInUse is what is held, in bytes.
func heapInUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
