package webhook

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/weir-dev/weir/policies"
)

// rememberCollector is how long an answer counts: users can ask as often as they like, and a
// collector that begins to work must be seen.
const rememberCollector = time.Second

// collectorTime bounds the request: whoever deletes waits for it.
const collectorTime = 2 * time.Second

// collector knows who collects the garbage of the cluster.
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

// who is unknown where that cannot be found out: what depends on it is then refused. Reviews that
// come at the same moment may read it each; what all of them ask of the API server is bounded.
func (c *collector) who(ctx context.Context) policies.Collector {
	if c.read == nil {
		return policies.CollectorUnknown
	}
	if last := c.last.Load(); last != nil && time.Since(last.at) < rememberCollector {
		return last.who
	}
	// The answer is for all who ask within a second: a caller that goes away must not end it.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), collectorTime)
	defer cancel()
	asked := time.Now()
	now, err := c.read(ctx)
	if err != nil {
		c.log.say("could not find out who collects garbage, so foreground deletions whose dependents are to be kept are refused",
			"err", err.Error())
		now = policies.CollectorUnknown
	}
	c.last.Store(&found{now, asked})
	return now
}
