package brake_test

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/brake"
	"github.com/weir-dev/weir/controller/graph"
)

// TestThereIsAPauseAfterALongTime: a kind of which nothing went for an hour begins as one of which
// nothing ever went, so that the first object does not go before the others are known.
func TestThereIsAPauseAfterALongTime(t *testing.T) {
	for quiet := range 6 {
		after := time.Duration(quiet) * 30 * time.Minute
		b := newBench(t, brake.DefaultLimits)
		b.many(widgets, "p", 7)
		b.now = b.now.Add(after)
		b.Tidy(b.now)
		answer := b.answer(action(pods, widgets, "next", false), nil)
		if fresh := after >= time.Hour; (answer == brake.Later) != fresh || (answer == brake.Go) == fresh {
			t.Errorf("%s later: answer %d", after, answer)
		}
		b.now = b.now.Add(brake.Pause)
		if answer := b.answer(action(pods, widgets, "next", false), nil); answer != brake.Go {
			t.Errorf("%s later, after the pause: answer %d", after, answer)
		}
	}
}

// TestWhatIsBeyondALimitIsSaid as an operator set it.
func TestWhatIsBeyondALimitIsSaid(t *testing.T) {
	for _, c := range []struct {
		limits brake.Limits
		sizes  int
		others int
		want   string
	}{
		{brake.Limits{Most: 10, Objects: 10, Share: 1}, 100, 10, "more than 10 objects would be deleted"},
		{brake.Limits{Most: 100, Objects: 10, Share: 0.07}, 100, 10, "11 objects would be deleted, among them 11 of 100 pods; the limit is 10 where that is more than 7 % of a kind"},
		{brake.Limits{Most: 100, Objects: 10, Share: 0.125}, 80, 10, "11 objects would be deleted, among them 11 of 80 pods; the limit is 10 where that is more than 12.5 % of a kind"},
		{brake.Limits{Most: 100, Objects: 0, Share: 0}, 80, 1, "2 objects would be deleted, among them 2 of 80 pods; the limit is 0 where that is more than 0 % of a kind"},
		{brake.Limits{Most: 100, Objects: 10, Share: 0.29}, 100, 28, ""}, // 29 of 100 are not more
	} {
		if got := whyHeld(t, c.limits, c.sizes, c.others); got != c.want {
			t.Errorf("%+v: %q, want %q", c.limits, got, c.want)
		}
	}
}

// whyHeld asks about a pod, beside so many others, and returns what a person is told; "" if it
// goes.
func whyHeld(t *testing.T, l brake.Limits, sizes, others int) string {
	t.Helper()
	b := newBench(t, l)
	b.sizes[pods] = sizes
	var refs []graph.Ref
	for i := range others {
		refs = append(refs, graph.Ref{Kind: pods, UID: types.UID(fmt.Sprint("other", i))})
	}
	if b.ask(action(pods, widgets, "p", false), nil, refs...) {
		return ""
	}
	return b.Why(widgets)
}
