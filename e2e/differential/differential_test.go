package differential

import (
	"context"
	"flag"
	"maps"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/weir-dev/weir/e2e/weir"
)

var (
	seed       = flag.Uint64("differential.seed", 1, "seed of the worlds; 0: from the clock")
	worlds     = flag.Int("differential.worlds", 6, "number of worlds")
	first      = flag.Int("differential.world", 0, "number of the first world")
	operations = flag.Int("differential.operations", 30, "operations in each")
	shadowed   = flag.Bool("differential.shadow", false, "run a weir in shadow mode beside the reference, print what it finds, and fail for a difference that is not one on purpose")
)

// TestScriptsEndAsUnderTheReference is what the package is for; its comment says how.
func TestScriptsEndAsUnderTheReference(t *testing.T) {
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano())
	}
	t.Logf("-differential.seed=%d -differential.world=%d -differential.worlds=%d -differential.operations=%d", *seed, *first, *worlds, *operations)
	binary, err := weir.RacingBinary(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // the last, when weir has ended
		if err := weir.Races(); err != nil {
			t.Error(err)
		}
	})
	pair, err := Start(context.WithoutCancel(t.Context()), binary, t.TempDir(), *shadowed, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pair.Stop)
	var all []World
	for i := range *worlds {
		all = append(all, Generate(*seed, *first+i, *operations))
	}
	started := time.Now()
	results, err := pair.Batch(t.Context(), all, "w")
	if err != nil {
		t.Fatal(err)
	}
	if err := pair.Again(t.Context(), results, "again"); err != nil {
		t.Fatal(err)
	}
	steps, changes, failed := 0, 0, 0
	causes := map[string]int{}
	for _, r := range results {
		steps, changes = steps+r.Steps, changes+r.Changes
		for _, e := range r.Explained {
			causes[e.Cause]++
		}
		if r.Failure != nil {
			failed++
			t.Error(r)
		}
	}
	t.Logf("%d worlds, %d operations of which %d changed something, %s: %d worlds differ for no cause",
		len(results), steps, changes, time.Since(started).Round(time.Second), failed)
	if changes < steps/3 {
		t.Error("most operations did nothing: the worlds are too empty")
	}
	if *shadowed {
		found, err := pair.Shadow.End(t.Context(), judgedWhenWritten, judgedMeanwhile)
		if err != nil {
			t.Error(err)
		}
		t.Logf("shadow mode beside the reference:\n%s", found)
	}
	for _, cause := range slices.Sorted(maps.Keys(causes)) {
		t.Logf("%4d objects differed: %s", causes[cause], cause)
	}
}
