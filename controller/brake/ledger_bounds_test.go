package brake_test

import (
	"testing"
	"time"

	"github.com/weir-dev/weir/controller/brake"
	"github.com/weir-dev/weir/controller/graph"
)

// TestThereIsAPauseAfterALongTime: a kind of which nothing went for an hour begins as one of which nothing ever went, so that the first object
// does not go before the others are known.
func TestThereIsAPauseAfterALongTime(t *testing.T) {
	for quiet := range 6 {
		after := time.Duration(quiet) * 30 * time.Minute
		b := newBench(t, brake.DefaultLimits)
		b.many(widgets, "p", 7)
		b.now = b.now.Add(after)
		b.Tidy(b.now)
		answer := b.Ask(b.now, action(pods, widgets, "next", false))
		if fresh := after >= time.Hour; (answer == brake.Later) != fresh || (answer == brake.Weigh) == fresh {
			t.Errorf("%s later: answer %d", after, answer)
		}
		b.now = b.now.Add(brake.Pause)
		if answer := b.Ask(b.now, action(pods, widgets, "next", false)); answer != brake.Weigh {
			t.Errorf("%s later, after the pause: answer %d", after, answer)
		}
	}
}

// TestTwoWhoAskAtOnceAreCountedOnce: both were told to weigh the object, before either came back.
func TestTwoWhoAskAtOnceAreCountedOnce(t *testing.T) {
	b := newBench(t, brake.Limits{Most: 3, Objects: 3, Share: 1})
	a := action(pods, widgets, "a", false)
	b.Ask(b.now, a)
	b.now = b.now.Add(brake.Pause)
	load := brake.Load{Weight: []graph.Counted{{Kind: pods, Count: 1}}, Sizes: b.sizes}
	for range 5 {
		if answer := b.Ask(b.now, action(pods, widgets, "b", false)); answer != brake.Weigh {
			t.Fatalf("answer %d, want Weigh", answer)
		}
		if answer, held := b.Charge(b.now, a, load); answer != brake.Go || held != nil {
			t.Fatalf("answer %d, held %v", answer, held)
		}
	}
	if went := b.many(widgets, "p", 5); went != 2 {
		t.Errorf("%d more went, want 2", went)
	}
}
