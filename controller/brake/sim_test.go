package brake

import (
	"cmp"
	"flag"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/internal/testkit/fixture"
	"github.com/weir-dev/weir/internal/testkit/sim"
)

var (
	simSeeds = flag.Int("sim.seeds", 0, "number of simulated clusters with a brake; 0: as many as begin within -sim.for")
	simFor   = flag.Duration("sim.for", 2*time.Second, "how long clusters are begun")
	simSteps = flag.Int("sim.steps", 2000, "steps of chaos in each")
	simSeed  = flag.Uint64("sim.seed", 0, "seed of the first; 0: from the clock")
)

// simulated is a Ledger in a simulation, where a tick is a second.
type simulated struct{ *Ledger }

func tick(now int) time.Time { return time.Unix(int64(now), 0) }

func (s simulated) Allows(now int, a graph.Action, g *graph.Graph) (yes bool, again int) {
	answer, _ := s.Ask(tick(now), a, func(around bool) Load { return loadOf(g, a, s.limits, around) })
	if answer == Later {
		again = int(Pause / time.Second)
	}
	return answer == Go, again
}

func (s simulated) Deleted(a graph.Action) { s.Gone(a) }

func (s simulated) Rewound(int) { s.Ledger.Rewound() }

func (s simulated) Hold(now int, owners schema.GroupResource) {
	s.Ledger.Hold(tick(now), owners, tick(now), "it was held before")
}

func (s simulated) Held() (all []schema.GroupResource) {
	for owners, acc := range s.kinds {
		if acc.held != nil {
			all = append(all, owners)
		}
	}
	slices.SortFunc(all, func(a, b schema.GroupResource) int { return cmp.Compare(a.String(), b.String()) })
	return all
}

func (s simulated) Waits(g *graph.Graph, owners schema.GroupResource) (uids []types.UID, open bool) {
	for next := uint32(0); ; {
		found, unknown, cursor := g.InferredFrom(owners, next)
		open = open || unknown > 0
		for _, f := range found {
			waits, goes := s.Stands(f.Ref, f.Inference)
			open = open || goes
			if waits {
				uids = append(uids, f.UID)
			}
		}
		if next = cursor; next == 0 {
			return uids, open
		}
	}
}

func (s simulated) Decide(owners schema.GroupResource, uids []types.UID) { s.Decided(owners, uids) }

var simLimits = Limits{Most: 2, Objects: 2, Share: 1}

func braking() sim.Braking {
	return sim.Braking{New: func() sim.Brake { return simulated{NewLedger(simLimits)} },
		Most: simLimits.Most, Window: int(window / time.Second), Together: int(span / time.Second)}
}

// simulate plays clusters until one goes wrong.
func simulate(t *testing.T, seeds iter.Seq2[int, uint64], b sim.Braking) (sim.Stats, error) {
	t.Helper()
	var mu sync.Mutex
	all, n := sim.Stats{}, 0
	runs, ctx := errgroup.WithContext(t.Context())
	runs.SetLimit(runtime.GOMAXPROCS(0))
	for i, s := range seeds {
		if ctx.Err() != nil {
			break
		}
		if n++; i == 0 {
			t.Logf("seed %d", s)
		}
		runs.Go(func() error {
			stats, err := sim.RunBraked(s, *simSteps, b)
			mu.Lock()
			defer mu.Unlock()
			all.Add(stats)
			if err != nil {
				return fmt.Errorf("-sim.seed=%d -sim.seeds=1 -sim.steps=%d: %w", s, *simSteps, err)
			}
			return nil
		})
	}
	err := runs.Wait()
	t.Logf("%d clusters: %s", n, all)
	return all, err
}

// TestNothingIsHeldForEverInSimulatedClusters: collectors with a brake, in clusters that are as
// unkind as they can be, and with persons who decide at random. What must hold is in the package
// comment of sim.
func TestNothingIsHeldForEverInSimulatedClusters(t *testing.T) {
	if _, err := simulate(t, fixture.Seeds(*simSeed, *simSeeds, *simFor), braking()); err != nil {
		t.Fatal(err)
	}
}

// TestSimulatedClustersAreUnkindToABrake: sooner or later all happens, in the same ones each time.
func TestSimulatedClustersAreUnkindToABrake(t *testing.T) {
	all, missing := sim.Stats{}, []string{"held", "decisions", "went by decision", "went before the limit", "went with what it depends on", "went of several kinds", "holds ended", "restarts", "failovers", "restores"}
	for _, s := range fixture.Seeds(1, 100, 0) {
		stats, err := sim.RunBraked(s, *simSteps, braking())
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
	t.Errorf("no %s in 100 clusters: they are too kind", strings.Join(missing, ", "))
}

// TestSimulationFindsWhatIsHeldForEver: what a person lets go must be decided about once more.
func TestSimulationFindsWhatIsHeldForEver(t *testing.T) {
	deaf := braking()
	deaf.Deaf = true
	if _, err := simulate(t, fixture.Seeds(1, 50, 0), deaf); err == nil {
		t.Error("the simulation does not find it")
	}
}
