package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/weir-dev/weir/e2e/load"
)

// shadowName is the work that tells what shadow mode costs beside replace mode.
const shadowName = "shadow beside replace"

// shadowed is what one mode takes, in one round.
type shadowed struct {
	following
	weight weight // of b.memory objects; zero: that was not measured
}

// measureShadow has a Weir in replace mode and one in shadow mode take turns. Beside the latter the
// reference collects.
func (b *bench) measureShadow(ctx context.Context, r *report) error {
	loose, err := load.Populate(ctx, b.plane.Config, load.Loose(b.n))
	if err != nil {
		return err
	}
	for round := range b.inTime(b.roundsOf(false)) {
		for _, mode := range []string{"replace", "shadow"} {
			x, err := b.shadowing(ctx, mode, func(ctx context.Context, s load.System) (x shadowed, err error) {
				x.following, err = b.followed(ctx, s, loose)
				return x, err
			})
			if err != nil {
				return err
			}
			r.shadowed[mode] = append(r.shadowed[mode], x)
			b.say("%s, round %d: %s: %.1f µs an update, %.1f µs an object made and collected", shadowName, round+1, mode, x.update, x.life)
		}
	}
	if err := load.Clear(ctx, b.plane.Config, loose); err != nil || b.memory == 0 {
		return err
	}
	layout := load.Tree(b.memory)
	full, err := load.Populate(ctx, b.plane.Config, layout)
	if err != nil {
		return err
	}
	for mode, all := range r.shadowed {
		x, err := b.shadowing(ctx, mode, func(ctx context.Context, s load.System) (x shadowed, err error) {
			x.weight, err = b.weigh(ctx, s)
			return x, err
		})
		if err != nil {
			return err
		}
		all[0].weight = x.weight
		b.say("%s, %d objects: %s: %s", shadowName, layout.Dependents()+1, mode, x.weight)
	}
	return load.Clear(ctx, b.plane.Config, full)
}

// shadowing measures a Weir in a mode.
func (b *bench) shadowing(ctx context.Context, mode string, measure func(context.Context, load.System) (shadowed, error)) (x shadowed, err error) {
	if mode == "shadow" {
		collector, _, err := load.StartAwake(ctx, b.plane.Config, b.lifted)
		if err != nil {
			return x, err
		}
		defer func() { err = errors.Join(err, collector.Stop()) }()
	}
	x, err = measure(ctx, load.Weir(b.plane, b.weir, b.kubeconfig, append([]string{"--mode", mode}, b.weirFlags...)...))
	if err != nil {
		err = fmt.Errorf("%s: %w", mode, err)
	}
	return x, err
}

func (r *report) writeShadowed(s *strings.Builder) {
	if len(r.shadowed) == 0 {
		return
	}
	fmt.Fprintf(s, "\n| mode; its CPU, µs, medians | each of %d updates of objects that own nothing | each of %d objects made while it runs, and collected | RSS, %d objects | heap |\n|---|---|---|---|---|\n", touches*r.bench.n, r.bench.n, r.bench.memory)
	for _, mode := range []string{"replace", "shadow"} {
		var update, life []float64
		for _, x := range r.shadowed[mode] {
			update, life = append(update, x.update), append(life, x.life)
		}
		w := r.shadowed[mode][0].weight
		fmt.Fprintf(s, "| %s | %.1f | %.1f | %.1f MB | %.1f MB |\n", mode, median(update), median(life), mb(w.RSS), mb(w.Heap))
	}
}
