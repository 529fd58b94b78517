package brake

import (
	"cmp"
	"flag"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/graph/sim"
)

var (
	simSeeds = flag.Int("sim.seeds", 200, "number of simulated clusters with a brake")
	simSteps = flag.Int("sim.steps", 2000, "steps of chaos in each")
	simSeed  = flag.Uint64("sim.seed", 0, "seed of the first; 0: from the clock")
)

// simulated is a Ledger in a simulation, where a tick is a second.
type simulated struct{ *Ledger }

func tick(now int) time.Time { return time.Unix(int64(now), 0) }

func (s simulated) Allows(now int, a graph.Action, g *graph.Graph) (yes bool, again int) {
	switch s.Ask(tick(now), a) {
	case Go:
		return true, 0
	case Held:
		return false, 0
	case Later:
		return false, int(Pause / time.Second)
	case Weigh:
	}
	answer, _ := s.Charge(tick(now), a, loadOf(g, a, s.limits, s.LooksAround(a.Inferred), s.writersHeld(), nil))
	return answer == Go, 0
}

func (s simulated) Signs(a graph.Action) bool { return s.signs(a) }

func (s simulated) Deleted(a graph.Action) { s.Gone(a) }

func (s simulated) Rewound(now int) { s.Settle(tick(now), "after the API server's history went back") }

func (s simulated) Hold(now int, c graph.Cause) {
	s.Ledger.Hold(tick(now), c, tick(now), "it was held before")
}

func (s simulated) Held() (all []graph.Cause) {
	for c, acc := range s.causes {
		if acc.held != nil {
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b graph.Cause) int { return cmp.Compare(causeFor(a).String(), causeFor(b).String()) })
	return all
}

func (s simulated) Waits(g *graph.Graph, c graph.Cause) (uids []types.UID, open bool) {
	for next := uint32(0); ; {
		found, unknown, cursor := g.InferredFrom(c, next)
		open = open || unknown > 0
		for _, f := range found {
			open = open || s.Goes(c, f.Inference, f.Ref)
			if s.Ledger.Waits(c, f.Inference, f.Ref) {
				uids = append(uids, f.UID)
			}
		}
		if next = cursor; next == 0 {
			return uids, open
		}
	}
}

func (s simulated) Decide(c graph.Cause, uids []types.UID) { s.Decided(c, uids) }

var simLimits = Limits{Most: 2, Objects: 2, Share: 1}

func braking() sim.Braking {
	return sim.Braking{New: func() sim.Brake { return simulated{NewLedger(simLimits, tick(0))} }, Most: simLimits.Most, Window: int(window / time.Second)}
}

// simulate plays so many clusters, and returns the first that went wrong.
func simulate(t *testing.T, first uint64, n int, b sim.Braking) (sim.Stats, error) {
	t.Helper()
	var mu sync.Mutex
	all := sim.Stats{}
	var runs errgroup.Group
	runs.SetLimit(runtime.GOMAXPROCS(0))
	for i := range n {
		runs.Go(func() error {
			stats, err := sim.RunBraked(first+uint64(i), *simSteps, b)
			mu.Lock()
			defer mu.Unlock()
			all.Add(stats)
			if err != nil {
				return fmt.Errorf("-sim.seed=%d -sim.steps=%d: %w", first+uint64(i), *simSteps, err)
			}
			return nil
		})
	}
	err := runs.Wait()
	return all, err
}

// TestNothingIsHeldForEverInSimulatedClusters: collectors with a brake, in clusters that are as unkind as they can be, and with persons who decide
// at random. What must hold is in the package comment of sim.
func TestNothingIsHeldForEverInSimulatedClusters(t *testing.T) {
	first, n := *simSeed, *simSeeds
	if first == 0 {
		first = uint64(time.Now().UnixNano())
	}
	if testing.Short() {
		n = min(n, 50)
	}
	t.Logf("seed %d", first)
	all, err := simulate(t, first, n, braking())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d clusters: %s", n, all)
	for _, what := range []string{"held", "decisions", "went by decision", "went before the limit", "went with what it depends on", "writers", "holds ended", "restarts", "failovers", "restores"} {
		if all[what] == 0 && n >= 50 {
			t.Errorf("no %s: the clusters are too kind", what)
		}
	}
}

// TestSimulationFindsWhatIsHeldForEver: what a person lets go must be decided about once more.
func TestSimulationFindsWhatIsHeldForEver(t *testing.T) {
	deaf := braking()
	deaf.Deaf = true
	if _, err := simulate(t, 1, 50, deaf); err == nil {
		t.Error("the simulation does not find it")
	}
}
