package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/weir-dev/weir/e2e/load"
)

// backFilled is how long it takes to add the finalizer to what was there before a policy, and what
// others notice of it.
type backFilled struct {
	objects int
	load.FinalizersAdded
	// another client's GET, the highest hundredth: alone, from the start of Weir to its first
	// change, and from there to the last
	idle, starting, during time.Duration
	// floor is what plain clients patch of the same objects in a second, and plainly another
	// client's GET meanwhile
	floor   float64
	plainly time.Duration
}

const backFillName = "back-fill"

// floorPatches is how many objects are patched for the floor: all are there still, without the
// finalizer.
const floorPatches = 10000

// idleTime is for how long the other client is measured alone.
const idleTime = 10 * time.Second

func (b *bench) measureBackFill(ctx context.Context, r *report) (err error) {
	b.say("making %d objects, to be stamped", b.coOwners)
	layout := load.Loose(b.coOwners)
	layout.Labels = enforced
	p, err := load.Populate(ctx, b.plane.Config, layout)
	if err != nil {
		return err
	}
	if err := load.Pause(ctx, digest); err != nil {
		return err
	}
	x := backFilled{objects: b.coOwners}
	stop := load.Latencies(ctx, b.plane.Config, p)
	err = load.Pause(ctx, idleTime)
	idle, idleErr := stop()
	if err = errors.Join(err, idleErr); err != nil {
		return err
	}
	if err := b.measurePatches(ctx, p, &x); err != nil {
		return err
	}
	dir, err := b.enforcedPolicy("Foreground")
	if err != nil {
		return err
	}
	var g *load.Guard
	stop = load.Latencies(ctx, b.plane.Config, p)
	x.FinalizersAdded, err = load.AwaitBackFill(ctx, b.plane.Config, b.plane.Metrics, p, func() (err error) {
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
	x.idle, x.starting, x.during = highest(idle, time.Time{}, x.Began), highest(during, x.Began, x.First), highest(during, x.First, x.Done)
	r.backFilled = &x
	b.say("back-fill of %d objects: %s after the start, the first after %s, %.0f/s, of plain patches' %.0f/s; another client's GET, p99: idle %s, beside plain patches %s, while weir starts %s, meanwhile %s",
		x.objects, x.Done.Sub(x.Began).Round(time.Millisecond), x.First.Sub(x.Began).Round(time.Millisecond), x.Rate(), x.floor, x.idle, x.plainly, x.starting, x.during)
	return nil
}

// measurePatches measures what the API server takes of the same requests from plain clients, before
// anything asks it about them.
func (b *bench) measurePatches(ctx context.Context, p *load.Population, x *backFilled) error {
	some := *p
	some.Dependents = p.Dependents[:min(floorPatches, len(p.Dependents))]
	stop := load.Latencies(ctx, b.plane.Config, p)
	began := time.Now()
	err := load.Touch(ctx, b.plane.Config, &some)
	ended := time.Now()
	all, latencyErr := stop()
	x.floor, x.plainly = float64(len(some.Dependents))/ended.Sub(began).Seconds(), highest(all, began, ended)
	return errors.Join(err, latencyErr, load.Pause(ctx, digest))
}

// highest is the highest hundredth of what was asked for from a time to another.
func highest(all []load.Latency, from, to time.Time) time.Duration {
	return load.Percentile(load.Within(all, from, to), 99)
}

func (r *report) writeBackFill(s *strings.Builder) {
	if x := r.backFilled; x != nil {
		fmt.Fprintf(s, "\n| back-fill of %d ConfigMaps, start of Weir included | of it until the first | objects/s from then on | plain patches, objects/s | share | another client's GET, p99, idle | beside plain patches | while Weir starts | during back-fill |\n|---|---|---|---|---|---|---|---|---|\n| %.1f s | %.1f s | %.0f | %.0f | %.2f | %.1f ms | %.1f ms | %.1f ms | %.1f ms |\n",
			x.objects, x.Done.Sub(x.Began).Seconds(), x.First.Sub(x.Began).Seconds(), x.Rate(), x.floor, x.Rate()/x.floor,
			x.idle.Seconds()*1000, x.plainly.Seconds()*1000, x.starting.Seconds()*1000, x.during.Seconds()*1000)
	}
}
