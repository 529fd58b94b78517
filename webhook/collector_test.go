package webhook

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"

	"github.com/weir-dev/weir/policies"
)

// Users can have it asked as often as they like; what cannot be found out is unknown, and is asked
// for again.
func TestWhoCollectsIsAskedOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, answer, failure := 0, policies.WeirCollects, error(nil)
		c := newCollector(func(context.Context) (policies.Collector, error) {
			asked++
			return answer, failure
		}, newSayer(logr.Discard()))
		for _, step := range []struct {
			after   time.Duration
			answer  policies.Collector
			failure error
			want    policies.Collector
			asked   int
		}{
			{0, policies.WeirCollects, nil, policies.WeirCollects, 1},
			{rememberCollector / 2, policies.OthersCollect, nil, policies.WeirCollects, 1},
			{rememberCollector, policies.OthersCollect, nil, policies.OthersCollect, 2},
			{rememberCollector, policies.WeirCollects, errors.New("no"), policies.CollectorUnknown, 3},
			{rememberCollector / 2, policies.WeirCollects, nil, policies.CollectorUnknown, 3},
			{rememberCollector, policies.WeirCollects, nil, policies.WeirCollects, 4},
		} {
			time.Sleep(step.after)
			answer, failure = step.answer, step.failure
			if got := c.who(t.Context()); got != step.want || asked != step.asked {
				t.Errorf("%+v: %v, asked %d times", step, got, asked)
			}
		}
		// What is found out is for all: a caller that is gone by then must not make it unknown.
		<-time.After(rememberCollector)
		c.read = func(ctx context.Context) (policies.Collector, error) { return policies.WeirCollects, ctx.Err() }
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if first, next := c.who(gone), c.who(t.Context()); first != policies.WeirCollects || next != policies.WeirCollects {
			t.Errorf("a caller goes away: %v, and then %v", first, next)
		}
		if got := newCollector(nil, nil).who(t.Context()); got != policies.CollectorUnknown {
			t.Errorf("%v where nobody knows", got)
		}
	})
}
