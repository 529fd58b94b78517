package main

import (
	"context"
	"errors"
	"time"

	"github.com/weir-dev/weir/e2e/load"
)

const backFillName = "back-fill"

// floorPatches is how many objects are patched for the floor: all are there still, without the
// finalizer.
const floorPatches = 10000

// measureBackFill measures how long it takes to add the finalizer to what was there before a
// policy, and what others notice of it.
func (b *bench) measureBackFill(ctx context.Context, r *report) (err error) {
	b.say("making %d objects, to be stamped", b.coOwners)
	layout := load.Loose(b.coOwners)
	layout.Labels = enforced
	p, err := b.populate(ctx, layout)
	if err != nil {
		return err
	}
	n, err := load.NewNeighbour(ctx, b.plane)
	if err != nil {
		return err
	}
	stop := n.Ask(ctx)
	began, err := time.Now(), load.Pause(ctx, idleTime)
	idle, idleErr := stop()
	if err = errors.Join(err, idleErr); err != nil {
		return err
	}
	idle = idle.Within(began, time.Now())
	floor, plainly, err := b.measurePatches(ctx, n, p)
	if err != nil {
		return err
	}
	dir, err := b.enforcedPolicy("Foreground")
	if err != nil {
		return err
	}
	var g *load.Guard
	stop = n.Ask(ctx)
	x, err := load.AwaitBackFill(ctx, b.plane.Config, b.plane.Metrics, p, func() (err error) {
		g, err = load.StartWeirPair(ctx, b.plane, b.weir, b.kubeconfig, dir, "replace")
		return err
	})
	during, duringErr := stop()
	if g != nil {
		err = errors.Join(err, g.Stop(ctx))
	}
	if err = errors.Join(err, duringErr); err != nil {
		return err
	}
	r.note("weir",
		figure{"objects", float64(b.coOwners)},
		figure{"took, with the start, s", x.Done.Sub(x.Began).Seconds()},
		figure{"first after, s", x.First.Sub(x.Began).Seconds()},
		figure{"objects/s from then on", x.Rate()}, figure{"of plain patches", x.Rate() / floor},
		figure{"another's GET, p99, idle, ms", milliseconds(idle.Get(99))},
		figure{"beside plain patches", milliseconds(plainly.Get(99))},
		figure{"during back-fill", milliseconds(during.Within(x.First, x.Done).Get(99))})
	return nil
}

// measurePatches measures what the API server takes of the same requests from plain clients, before
// anything asks it about them, and what another client waits for meanwhile.
func (b *bench) measurePatches(ctx context.Context, n *load.Neighbour, p *load.Population) (rate float64,
	meanwhile load.Answers, err error) {
	some := *p
	some.Dependents = p.Dependents[:min(floorPatches, len(p.Dependents))]
	stop := n.Ask(ctx)
	began := time.Now()
	err = load.Touch(ctx, b.plane.Config, &some)
	ended := time.Now()
	all, askErr := stop()
	return float64(len(some.Dependents)) / ended.Sub(began).Seconds(), all.Within(began, ended), errors.Join(err,
		askErr, load.Pause(ctx, digest))
}
