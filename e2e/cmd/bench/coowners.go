package main

import (
	"context"
	"time"

	"github.com/weir-dev/weir/e2e/load"
)

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
		b.stop(running)
		if err != nil {
			return err
		}
		r.note(s.Name, figure{"first work after, s", awake.Seconds()},
			figure{"lookups/s", asked["GET"] / coOwnersTime.Seconds()},
			figure{"references taken off/s", asked["PATCH"] / coOwnersTime.Seconds()})
	}
	return load.Clean(ctx, b.plane.Config, p)
}
