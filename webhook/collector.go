package webhook

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/weir-dev/weir/policies"
)

// rememberCollector is how long an answer counts. Users can ask as often as they like, and a
// collector that begins to work must be seen soon.
const rememberCollector = time.Second

// collectorTime bounds the request, for which the user who deletes waits.
const collectorTime = 2 * time.Second

// collector finds out which collector works in the cluster.
type collector struct {
	read func(context.Context) (policies.Collector, error) // nil: it is not known
	log  *sayer
	last atomic.Pointer[found]
}

// found is who collected at a time.
type found struct {
	who policies.Collector
	at  time.Time
}

func newCollector(read func(context.Context) (policies.Collector, error), log *sayer) *collector {
	return &collector{read: read, log: log}
}

// who returns the collector, or unknown if that cannot be found out; what depends on it is then
// refused. Reviews that come at the same time may each ask; the pace of all requests bounds that.
func (c *collector) who(ctx context.Context) policies.Collector {
	if c.read == nil {
		return policies.CollectorUnknown
	}
	if last := c.last.Load(); last != nil && time.Since(last.at) < rememberCollector {
		return last.who
	}
	// The answer is for all reviews of the next second: one that is given up must not end it.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), collectorTime)
	defer cancel()
	asked := time.Now()
	now, err := c.read(ctx)
	if err != nil {
		c.log.say("could not find out who collects garbage, "+
			"so foreground deletions whose dependents are to be kept are refused", "err", err.Error())
		now = policies.CollectorUnknown
	}
	c.last.Store(&found{now, asked})
	return now
}
