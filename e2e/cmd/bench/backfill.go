package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-dev/weir/e2e/load"
)

// backFilled is how long it takes to stamp what was there before a policy, and what others notice of it.
type backFilled struct {
	objects      int
	took         time.Duration
	idle, during time.Duration // another client's GET, the highest hundredth
}

// idleTime is for how long the other client is measured alone.
const idleTime = 10 * time.Second

func (b *bench) measureBackFill(ctx context.Context, r *report) (err error) {
	b.say("making %d objects, to be stamped", b.coOwners)
	shape := load.Loose(b.coOwners)
	shape.Labels = enforced
	p, err := load.Populate(ctx, b.plane.Config, shape)
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
	dir, err := b.enforcedPolicy("Foreground")
	if err != nil {
		return err
	}
	var g *load.Guard
	stop = load.Latencies(ctx, b.plane.Config, p)
	x.took, err = load.Stamped(ctx, b.plane.Config, p, func() (err error) {
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
	x.idle, x.during = highest(idle), highest(during)
	r.backFilled = &x
	b.say("back-fill of %d objects: %s; another client's GET, p99: %s, idle %s", x.objects, x.took.Round(time.Millisecond), x.during, x.idle)
	return nil
}

// highest is the highest hundredth.
func highest(v []time.Duration) time.Duration {
	if len(v) == 0 {
		return 0
	}
	slices.Sort(v)
	return v[(len(v)-1)*99/100]
}

func (r *report) writeBackFill(s *strings.Builder) {
	if x := r.backFilled; x != nil {
		fmt.Fprintf(s, "\n| back-fill of %d ConfigMaps, start of Weir included | objects/s | another client's GET, p99, idle | meanwhile |\n|---|---|---|---|\n| %.1f s | %.0f | %.1f ms | %.1f ms |\n",
			x.objects, x.took.Seconds(), float64(x.objects)/x.took.Seconds(), x.idle.Seconds()*1000, x.during.Seconds()*1000)
	}
}
