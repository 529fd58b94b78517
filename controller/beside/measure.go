package beside

import (
	"context"
	"fmt"
	"time"

	"github.com/weir-dev/weir/controller/await"
	"github.com/weir-dev/weir/controller/events"
	"github.com/weir-dev/weir/policies/v1beta1"
)

// every returns the time between two canaries in companion mode: a minute. A collector that works
// may take that long.
func (c *Canary) every() time.Duration { return 6 * c.Stands }

// Measure creates a canary every minute until ctx ends, and reports whether, and after what time,
// the built-in collector deletes it. Collectors that were silent for weeks were found by full disks
// (kubernetes/kubernetes#60037).
func (c *Canary) Measure(ctx context.Context) {
	silent := false
	for ctx.Err() == nil {
		wait := c.every()
		switch is, err := c.measure(ctx, silent); {
		case ctx.Err() != nil:
			return
		case err != nil:
			c.metrics.alive.Reset()
			c.metrics.lag.Reset()
			c.Log.Info("cannot tell whether the built-in garbage collector works; will try again", "err", err.Error())
		default:
			silent = is
			if silent {
				wait = failureRetry
			}
		}
		if await.Pause(ctx, wait) != nil {
			return
		}
	}
}

// measure waits for the end of one canary. It goes on waiting for one that a collector left.
func (c *Canary) measure(ctx context.Context, was bool) (silent bool, err error) {
	p, silent, err := c.trial(ctx, c.every())
	if err != nil {
		return was, err
	}
	took := time.Since(p.since)
	c.metrics.measured(!silent, took)
	if silent != was {
		text, reason, tell := "the built-in garbage collector works again", events.ReasonCollectorWorks, c.Reporter.Tell
		if silent {
			reason, tell = events.ReasonCollectorSilent, c.Reporter.Warn
			text = fmt.Sprintf("the built-in garbage collector does not work: ConfigMap %s/%s, whose owner never existed, "+
				"stands for %s. Garbage stays, and objects that are being deleted in the foreground wait. "+
				"See the log of kube-controller-manager",
				c.Namespace, v1beta1.CollectorCanary, took.Round(time.Second))
		}
		c.Log.Info(text)
		tell(c.ref(p.uid), reason, text)
	}
	return silent, nil
}
