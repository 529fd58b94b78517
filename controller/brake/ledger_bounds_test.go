package brake_test

import (
	"testing"
	"time"

	"github.com/weir-dev/weir/controller/brake"
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
