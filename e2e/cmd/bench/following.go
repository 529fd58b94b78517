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
	followingName = "CPU of following"
	shadowName    = "shadow beside replace"
	// touches is how often each object is changed.
	touches = 9
)

// measureFollowing has systems take turns.
func (b *bench) measureFollowing(ctx context.Context, r *report) error {
	alone := func(_ context.Context, _ load.System, do func() error) error { return do() }
	return b.eachFollows(ctx, r, b.systems, alone)
}

// measureShadow has a Weir in replace mode and one in shadow mode take turns. Beside the latter the
// reference collects.
func (b *bench) measureShadow(ctx context.Context, r *report) error {
	var modes []load.System
	for _, mode := range []string{"replace", "shadow"} {
		s := load.Weir(b.plane, b.weir, b.kubeconfig, slices.Concat([]string{"--mode", mode}, b.weirFlags)...)
		s.Name = mode
		modes = append(modes, s)
	}
	beside := func(ctx context.Context, s load.System, do func() error) error {
		if s.Name != "shadow" {
			return do()
		}
		collector, _, err := load.StartAwake(ctx, b.plane.Config, b.lifted)
		if err != nil {
			return err
		}
		return errors.Join(do(), collector.Stop())
	}
	if err := b.eachFollows(ctx, r, modes, beside); err != nil || b.memory == 0 {
		return err
	}
	full, err := load.Populate(ctx, b.plane.Config, load.Tree(b.memory))
	if err != nil {
		return err
	}
	for _, s := range modes {
		err := beside(ctx, s, func() error {
			w, err := b.weigh(ctx, s)
			if err == nil {
				r.note(fmt.Sprintf("%s, %d objects", s.Name, b.memory), w.figures(load.Footprint{}, b.memory)...)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return load.Clear(ctx, b.plane.Config, full)
}

// eachFollows measures what each system takes of CPU: for each update of an object that owns
// nothing, and for each object that is made while it runs, and collected.
func (b *bench) eachFollows(ctx context.Context, r *report, systems []load.System,
	beside func(context.Context, load.System, func() error) error) error {
	loose, err := load.Populate(ctx, b.plane.Config, load.Loose(b.n))
	if err != nil {
		return err
	}
	for round := range b.inTime(b.rounds) {
		for _, s := range inRound(systems, round, false) {
			err := beside(ctx, s, func() error {
				return b.while(ctx, s, func(running *load.Running, _ time.Duration) error {
					return b.follows(ctx, r, s, running, loose)
				})
			})
			if err != nil {
				return fmt.Errorf("by %s: %w", s.Name, err)
			}
		}
	}
	return load.Clear(ctx, b.plane.Config, loose)
}

func (b *bench) follows(ctx context.Context, r *report, s load.System, running *load.Running,
	loose *load.Population) error {
	update, err := load.Spent(ctx, running, func() (int, error) {
		for range touches {
			if err := load.Touch(ctx, b.plane.Config, loose); err != nil {
				return 0, err
			}
		}
		return touches * b.n, nil
	})
	if err != nil {
		return err
	}
	life, err := load.Spent(ctx, running, func() (int, error) {
		p, err := load.Populate(ctx, b.plane.Config, load.Tree(b.n))
		if err == nil {
			_, err = load.Cascade(ctx, b.plane.Config, b.plane.Metrics, p, metav1.DeletePropagationBackground)
		}
		return b.n, err
	})
	if err != nil {
		return err
	}
	r.note(s.Name, figure{"CPU of an update of what owns nothing, µs", update},
		figure{"of an object made and collected, µs", life})
	return nil
}
