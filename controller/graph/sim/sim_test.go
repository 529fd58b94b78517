package sim_test

import (
	"flag"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/weir-dev/weir/controller/graph/sim"
)

var (
	seeds = flag.Int("sim.seeds", 400, "number of simulated clusters")
	steps = flag.Int("sim.steps", 2000, "steps of chaos in each")
	seed  = flag.Uint64("sim.seed", 0, "seed of the first; 0: from the clock")
)

// TestSimulatedClusters lets collectors work on clusters that are as unkind as they can be. What must
// hold is in the package comment of sim.
func TestSimulatedClusters(t *testing.T) {
	first, n := *seed, *seeds
	if first == 0 {
		first = uint64(time.Now().UnixNano())
	}
	if testing.Short() {
		n = min(n, 50)
	}
	t.Logf("seed %d", first)
	var mu sync.Mutex
	all, begun := sim.Stats{}, time.Now()
	runs, ctx := errgroup.WithContext(t.Context())
	runs.SetLimit(runtime.GOMAXPROCS(0))
	for i := range n {
		if ctx.Err() != nil {
			break
		}
		if i > 0 && i%100_000 == 0 {
			t.Logf("%d clusters after %s", i, time.Since(begun).Round(time.Second))
		}
		runs.Go(func() error {
			stats, err := sim.Run(first+uint64(i), *steps)
			mu.Lock()
			defer mu.Unlock()
			all.Add(stats)
			if err != nil {
				return fmt.Errorf("-sim.seed=%d -sim.steps=%d: %w", first+uint64(i), *steps, err)
			}
			return nil
		})
	}
	if err := runs.Wait(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d clusters: %s", n, all)
	for _, what := range []string{
		"deletes accepted", "releases accepted", "unblocks accepted", "unfinalizes accepted", "lookups", "rulings", "policies changed", "refused", "answers lost",
		"broken watches", "restarts", "failovers", "requests outlived their process", "two leaders at once", "restores", "ghosts found",
		"namespaces emptied", "deleted with their namespaces",
	} {
		if all[what] == 0 && n >= 50 {
			t.Errorf("no %s: the clusters are too kind", what)
		}
	}
}

// TestSimulationFollowsFromItsSeed: a seed that is printed is of use only if it does the same again.
func TestSimulationFollowsFromItsSeed(t *testing.T) {
	for seed := range uint64(5) {
		once, err := sim.Run(seed, *steps)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		again, err := sim.Run(seed, *steps)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if diff := cmp.Diff(once, again); diff != "" {
			t.Errorf("seed %d plays differently (-once +again):\n%s", seed, diff)
		}
	}
}
