package main

import (
	"context"
	"fmt"
	"time"

	"github.com/weir-dev/weir/e2e/load"
)

const (
	// touches is how often each object is changed.
	touches = 9
	// idleFor is how long a process is looked at that has nothing to do.
	idleFor = 5 * time.Second
)

// measureFollowing measures what each system takes of CPU: for each update of an object that owns
// nothing, and for each object that is made while it runs, and collected.
func (b *bench) measureFollowing(ctx context.Context) error {
	loose, err := load.Populate(ctx, b.Config, load.Loose(b.n, nil))
	if err != nil {
		return err
	}
	for round := range b.inTime(b.rounds) {
		for _, s := range inRound(b.systems, round, false) {
			err := b.while(ctx, s, func(r *running, _ time.Duration) error { return b.follows(ctx, s, r, loose) })
			if err != nil {
				return fmt.Errorf("by %s: %w", s.name, err)
			}
		}
	}
	return b.clean(ctx, loose)
}

func (b *bench) follows(ctx context.Context, s system, r *running, loose *load.Population) error {
	update, err := spent(ctx, r, func() error {
		for range touches {
			if err := touch(ctx, b.admin, loose); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	life, err := spent(ctx, r, func() error {
		p, err := load.Populate(ctx, b.Config, load.Tree(b.n))
		if err == nil {
			_, err = b.cascade(ctx, b.admin, p, background)
		}
		return err
	})
	if err != nil {
		return err
	}
	b.note(s.name, figure{"CPU of an update of what owns nothing, µs", update / float64(touches*b.n) * 1e6},
		figure{"of an object made and collected, µs", life / float64(b.n) * 1e6})
	return nil
}

// spent is what a process takes of CPU while something is done, in seconds, beyond what it takes
// when nothing is done. It is given time before that and after it.
func spent(ctx context.Context, r *running, do func() error) (float64, error) {
	if err := pause(ctx, digest); err != nil {
		return 0, err
	}
	taken := func(do func() error) (cpu, took float64, err error) {
		started := time.Now()
		before, err := cpuOf(r.Child)
		if err == nil {
			err = do()
		}
		if err != nil {
			return 0, 0, err
		}
		after, err := cpuOf(r.Child)
		return after - before, time.Since(started).Seconds(), err
	}
	idle, rest, err := taken(func() error { return pause(ctx, idleFor) })
	if err != nil {
		return 0, err
	}
	busy, took, err := taken(func() error {
		if err := do(); err != nil {
			return err
		}
		return pause(ctx, digest)
	})
	return busy - idle*took/rest, err
}
