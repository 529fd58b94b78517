package main

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/e2e/load"
)

const (
	followingName = "CPU of following"
	// touches is how often each object is changed.
	touches = 9
)

// following is what a process takes of CPU, in microseconds: for each update of an object that owns
// nothing, and for each object that is made while it runs, and collected.
type following struct{ update, life float64 }

// measureFollowing has systems take turns.
func (b *bench) measureFollowing(ctx context.Context, r *report) error {
	loose, err := load.Populate(ctx, b.plane.Config, load.Loose(b.n))
	if err != nil {
		return err
	}
	for round := range b.inTime(b.rounds) {
		for _, s := range inRound(b.systems, round, false) {
			f, err := b.followed(ctx, s, loose)
			if err != nil {
				return fmt.Errorf("by %s: %w", s.Name, err)
			}
			r.following[s.Name] = append(r.following[s.Name], f)
			b.say("%s, round %d: %s: %.1f µs an update, %.1f µs an object made and collected", followingName, round+1, s.Name, f.update, f.life)
		}
	}
	return load.Clear(ctx, b.plane.Config, loose)
}

func (b *bench) followed(ctx context.Context, s load.System, loose *load.Population) (f following, err error) {
	running, _, err := load.StartAwake(ctx, b.plane.Config, s)
	if err != nil {
		return f, err
	}
	defer func() {
		if stopErr := running.Stop(); stopErr != nil {
			b.say("%v", stopErr)
		}
	}()
	if f.update, err = load.Spent(ctx, running, func() (int, error) {
		for range touches {
			if err := load.Touch(ctx, b.plane.Config, loose); err != nil {
				return 0, err
			}
		}
		return touches * b.n, nil
	}); err != nil {
		return f, err
	}
	f.life, err = load.Spent(ctx, running, func() (int, error) {
		p, err := load.Populate(ctx, b.plane.Config, load.Tree(b.n))
		if err == nil {
			_, err = load.Cascade(ctx, b.plane.Config, b.plane.Metrics, p, metav1.DeletePropagationBackground)
		}
		return b.n, err
	})
	return f, err
}

func (r *report) writeFollowing(s *strings.Builder) {
	if len(r.following) == 0 {
		return
	}
	fmt.Fprintf(s, "\n| its CPU, µs, medians | each of %d updates of objects that own nothing | each of %d objects made while it runs, and collected |\n|---|---|---|\n", touches*r.bench.n, r.bench.n)
	for _, sys := range r.bench.systems {
		of := func(f func(following) float64) float64 {
			var all []float64
			for _, x := range r.following[sys.Name] {
				all = append(all, f(x))
			}
			return median(all)
		}
		fmt.Fprintf(s, "| %s | %.1f | %.1f |\n", sys.Name, of(func(f following) float64 { return f.update }), of(func(f following) float64 { return f.life }))
	}
}
