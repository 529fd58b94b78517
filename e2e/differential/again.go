package differential

import (
	"context"
	"fmt"
	"strings"
)

// undecided is the cause of what the reference itself does one time and not another.
const undecided = "the reference does either"

// replays is how often a world that failed is run again.
const replays = 4

// Again runs the worlds that failed some more times, up to the step after which they did. What
// order the reference's workers take things in decides some cases: if it ends once as Weir did,
// that is not a difference. If Weir does not end twice as it did, it is one that this says.
func (p *Pair) Again(ctx context.Context, results []Result, prefix string) error {
	var worlds []World
	var of []int
	for i, r := range results {
		if r.Failure == nil {
			continue
		}
		w := r.World
		w.Script = w.Script[:r.Failure.Step+1]
		for range replays {
			worlds, of = append(worlds, w), append(of, i)
		}
	}
	if len(worlds) == 0 {
		return nil
	}
	again, err := p.Batch(ctx, worlds, prefix)
	if err != nil {
		return fmt.Errorf("run worlds again: %w", err)
	}
	same := map[int]bool{}
	for n, i := range of {
		failed := results[i].Failure
		if again[n].Steps != failed.Step+1 {
			continue // it differed before
		}
		if len(Compare(failed.Case.Weir, again[n].Weir)) > 0 {
			failed.Wavers = true
		}
		if len(Compare(again[n].Reference, failed.Case.Weir)) == 0 {
			same[i] = true
		}
	}
	for i := range same {
		f := results[i].Failure
		for _, d := range f.Differ {
			results[i].Explained = append(results[i].Explained, Explained{d, f.Step, undecided})
		}
		results[i].Failure = nil
	}
	return nil
}

// String tells of a failure all that is needed to look into it.
func (r Result) String() string {
	f := r.Failure
	if f == nil {
		return fmt.Sprintf("world %d: %d steps", r.World.Number, r.Steps)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "world %d differs after step %d:\n%s", r.World.Number, f.Step, r.World.Text(f.Step))
	for _, name := range f.Case.Before.names() {
		fmt.Fprintf(&b, "  before: %s: %s\n", name, f.Case.Before[name])
	}
	for _, d := range f.Differ {
		fmt.Fprintf(&b, "  after: %s\n", d)
	}
	if f.Wavers {
		b.WriteString("  run again, Weir did not always end so\n")
	}
	return b.String()
}
