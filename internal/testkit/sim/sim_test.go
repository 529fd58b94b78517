package sim_test

import (
	"flag"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/weir-dev/weir/internal/testkit/fixture"
	"github.com/weir-dev/weir/internal/testkit/sim"
)

var (
	seeds  = flag.Int("sim.seeds", 0, "number of simulated clusters; 0: as many as begin within -sim.for")
	within = flag.Duration("sim.for", 2*time.Second, "how long clusters are begun")
	steps  = flag.Int("sim.steps", 2000, "steps of chaos in each")
	seed   = flag.Uint64("sim.seed", 0, "seed of the first; 0: from the clock")
)

// TestSimulatedClusters lets collectors work on clusters that are as unkind as they can be. What
// must hold is in the package comment of sim.
func TestSimulatedClusters(t *testing.T) {
	var mu sync.Mutex
	all, begun, n := sim.Stats{}, time.Now(), 0
	runs, ctx := errgroup.WithContext(t.Context())
	runs.SetLimit(runtime.GOMAXPROCS(0))
	for i, s := range fixture.Seeds(*seed, *seeds, *within) {
		if ctx.Err() != nil {
			break
		}
		if n++; i == 0 {
			t.Logf("seed %d", s)
		} else if i%100_000 == 0 {
			t.Logf("%d clusters after %s", i, time.Since(begun).Round(time.Second))
		}
		runs.Go(func() error {
			stats, err := sim.Run(s, *steps)
			mu.Lock()
			defer mu.Unlock()
			all.Add(stats)
			if err != nil {
				return fmt.Errorf("-sim.seed=%d -sim.seeds=1 -sim.steps=%d: %w", s, *steps, err)
			}
			return nil
		})
	}
	if err := runs.Wait(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d clusters: %s", n, all)
}

// TestSimulationFollowsFromItsSeed: a seed that is printed is of use only if it does the same
// again.
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

// TestSimulatedClustersAreUnkind: sooner or later all happens, in the same ones each time.
func TestSimulatedClustersAreUnkind(t *testing.T) {
	all, missing := sim.Stats{}, []string{
		"deletes accepted", "releases accepted", "unblocks accepted", "unfinalizes accepted", "lookups", "rulings", "policies changed", "refused", "answers lost",
		"broken watches", "restarts", "failovers", "requests outlived their process", "two leaders at once", "restores", "ghosts found",
		"namespaces emptied", "deleted with their namespaces",
	}
	for _, s := range fixture.Seeds(1, 50, 0) {
		stats, err := sim.Run(s, *steps)
		if err != nil {
			t.Fatalf("seed %d: %v", s, err)
		}
		all.Add(stats)
		missing = slices.DeleteFunc(missing, func(what string) bool { return all[what] > 0 })
		if len(missing) == 0 {
			t.Logf("%d clusters", s)
			return
		}
	}
	t.Errorf("no %s in 50 clusters: they are too kind", strings.Join(missing, ", "))
}
