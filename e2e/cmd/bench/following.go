package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/e2e/load"
)

const (
	followingName = "CPU of following"
	// touches is how often each object is changed.
	touches = 9
	// idleFor is how long a process is looked at that has nothing to do.
	idleFor = 5 * time.Second
)

// following is what a process takes of CPU, in microseconds: for each update of an object that owns nothing, and for each object that is
// made while it runs, and collected.
type following struct{ update, life float64 }

// measureFollowing has systems take turns.
func (b *bench) measureFollowing(ctx context.Context, r *report) error {
	loose, err := load.Populate(ctx, b.plane.Config, load.Loose(b.n))
	if err != nil {
		return err
	}
	for round := range b.rounds {
		for _, s := range b.systems {
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
	if f.update, err = spent(ctx, running, touches*b.n, func() error {
		for range touches {
			if err := load.Touch(ctx, b.plane.Config, loose); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return f, err
	}
	f.life, err = spent(ctx, running, b.n, func() error {
		p, err := load.Populate(ctx, b.plane.Config, load.Tree(b.n))
		if err == nil {
			_, err = load.Cascade(ctx, b.plane.Config, b.plane.Metrics, p, metav1.DeletePropagationBackground)
		}
		return err
	})
	return f, err
}

// spent is what a process takes of CPU while something is done n times, in microseconds each, beyond what it takes when nothing is done.
// It is given time before that and after it.
func spent(ctx context.Context, r *load.Running, n int, do func() error) (float64, error) {
	if err := load.Pause(ctx, digest); err != nil {
		return 0, err
	}
	idle, pause, err := taken(r, func() error { return load.Pause(ctx, idleFor) })
	if err != nil {
		return 0, err
	}
	busy, took, err := taken(r, func() error {
		if err := do(); err != nil {
			return err
		}
		return load.Pause(ctx, digest)
	})
	return (busy - idle*took/pause) / float64(n) * 1e6, err
}

// taken is what a process takes of CPU while something is done, and how long that took, in seconds.
func taken(r *load.Running, do func() error) (cpu, took float64, err error) {
	started := time.Now()
	before, err := load.CPU(r.Child)
	if err == nil {
		err = do()
	}
	if err != nil {
		return 0, 0, err
	}
	after, err := load.CPU(r.Child)
	return after - before, time.Since(started).Seconds(), err
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
