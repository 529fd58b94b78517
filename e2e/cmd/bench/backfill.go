package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/e2e/load"
)

const (
	// floorPatches is how many objects are patched for the floor: all are there still, without the
	// finalizer.
	floorPatches = 10000
	// progressEvery is how often the API server is asked how far it is: it counts its requests
	// anyway, where to follow the objects would take as much of it, and of the process that measures
	// it, as back-fill.
	progressEvery = 500 * time.Millisecond
	// backFillPatience is how long back-fill may do nothing.
	backFillPatience = time.Minute
)

// measureBackFill measures how long it takes to add the finalizer to what was there before a
// policy, and what others notice of it.
func (b *bench) measureBackFill(ctx context.Context) (err error) {
	b.say("making %d objects", b.many)
	p, err := b.populate(ctx, load.Loose(b.many, enforced))
	if err != nil {
		return err
	}
	n, err := b.newNeighbour(ctx)
	if err != nil {
		return err
	}
	idle, err := n.idle(ctx)
	if err != nil {
		return err
	}
	// What the API server takes of the same requests from plain clients.
	some := *p
	some.Dependents = p.Dependents[:min(floorPatches, b.many)]
	var floor float64
	plainly, err := n.while(ctx, func() (began, ended time.Time, err error) {
		began = time.Now()
		err = touch(ctx, b.admin, &some)
		ended = time.Now()
		floor = float64(len(some.Dependents)) / ended.Sub(began).Seconds()
		return began, ended, err
	})
	if err == nil {
		err = pause(ctx, digest)
	}
	if err != nil {
		return err
	}
	var x backFill
	during, err := n.while(ctx, func() (began, ended time.Time, err error) {
		x, err = b.backFill(ctx, p)
		return x.first, x.done, err
	})
	if err != nil {
		return err
	}
	rate := float64(x.sinceFirst) / x.done.Sub(x.first).Seconds()
	b.note("weir", figure{"objects", float64(b.many)},
		figure{"took, with the start, s", x.done.Sub(x.began).Seconds()}, figure{"first after, s", x.first.Sub(x.began).Seconds()},
		figure{"objects/s from then on", rate}, figure{"of plain patches", rate / floor},
		figure{"another's GET, p99, idle, ms", percentile(idle.get, 99)},
		figure{"beside plain patches", percentile(plainly.get, 99)}, figure{"during back-fill", percentile(during.get, 99)})
	return nil
}

// backFill is how a population got weir's finalizer.
type backFill struct {
	began, first, done time.Time // of weir; of the first sample that shows a change; of the one that shows all
	sinceFirst         int       // how many were left at first
}

// backFill starts weir, and waits until every dependent of a population carries its finalizer.
func (b *bench) backFill(ctx context.Context, p *load.Population) (x backFill, err error) {
	patched := func() (int, error) {
		c, err := b.requests(ctx, func(r request) bool {
			return about(p.Layout.Kind)(r) && r["verb"] == "PATCH" && r["code"] == "200"
		})
		return int(c.total()), err
	}
	before, err := patched()
	if err != nil {
		return x, err
	}
	x.began = time.Now()
	g, err := b.startPair(ctx, enforcedPolicy("Foreground"), "replace")
	if err != nil {
		return x, err
	}
	defer func() { err = errors.Join(err, g.stop(ctx)) }()
	for moved, last := time.Now(), 0; ; {
		n, err := patched()
		if err != nil {
			return x, err
		}
		n -= before
		now := time.Now()
		if n > last {
			moved, last = now, n
		}
		if n > 0 && x.first.IsZero() {
			x.first, x.sinceFirst = now, len(p.Dependents)-n
		}
		if n >= len(p.Dependents) { // others may change objects of the kind, too
			if left, err := b.unstamped(ctx, p); left == 0 || err != nil {
				x.done = now
				return x, err
			}
		}
		if now.Sub(moved) > backFillPatience {
			return x, fmt.Errorf("nothing happened for %s after %d of %d", backFillPatience, n, len(p.Dependents))
		}
		if err := pause(ctx, progressEvery); err != nil {
			return x, err
		}
	}
}

// unstamped is how many dependents of a population do not carry weir's finalizer.
func (b *bench) unstamped(ctx context.Context, p *load.Population) (int, error) {
	n := len(p.Dependents)
	for options := (metav1.ListOptions{Limit: 1000}); ; {
		list, err := b.admin.of(p).List(ctx, options)
		if err != nil {
			return 0, err
		}
		for i := range list.Items {
			if slices.Contains(list.Items[i].Finalizers, weirFinalizer) {
				n--
			}
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return n, nil
		}
	}
}
