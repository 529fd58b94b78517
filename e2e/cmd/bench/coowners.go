package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/weir-dev/weir/e2e/load"
)

// start is how a system begins its work in a cluster.
type start struct {
	awake  time.Duration // from the start of the process to its first work
	asked  load.Counts   // requests about ConfigMaps in the time after that
	within time.Duration
}

const coOwnersName = "start, co-owners"

// coOwnersTime is for how long requests are counted.
const coOwnersTime = 30 * time.Second

// measureCoOwners starts each system in a cluster in which every object has an owner that is there,
// and names another that never was: they are to be looked up, and to come off, but nothing waits
// for it.
func (b *bench) measureCoOwners(ctx context.Context, r *report) error {
	b.say("making %d objects, each with an owner that never was", b.coOwners)
	p, err := load.Populate(ctx, b.plane.Config, load.CoOwned(b.coOwners))
	if err != nil {
		return err
	}
	for _, s := range b.systems {
		running, awake, err := load.StartAwake(ctx, b.plane.Config, s)
		if err != nil {
			return err
		}
		asked, err := load.Requests(ctx, b.plane.Metrics, load.ConfigMap, coOwnersTime)
		if stopErr := running.Stop(); stopErr != nil {
			b.say("%v", stopErr)
		}
		if err != nil {
			return err
		}
		r.starts[s.Name] = start{awake, asked, coOwnersTime}
		b.say("%d objects, each with an owner that never was: %s works after %.2f s, and asks %v in %s", b.coOwners, s.Name, awake.Seconds(), asked, coOwnersTime)
	}
	return load.Clean(ctx, b.plane.Config, p)
}

func (r *report) writeCoOwners(s *strings.Builder) {
	if len(r.starts) == 0 {
		return
	}
	fmt.Fprintf(s, "\n| start with %d objects, each with an owner that never was | first work after | lookups/s | references taken off/s |\n|---|---|---|---|\n", r.bench.coOwners)
	for _, sys := range r.bench.systems {
		x := r.starts[sys.Name]
		fmt.Fprintf(s, "| %s | %.2f s | %.0f | %.0f |\n", sys.Name, x.awake.Seconds(),
			x.asked["GET"]/x.within.Seconds(), x.asked["PATCH"]/x.within.Seconds())
	}
}
