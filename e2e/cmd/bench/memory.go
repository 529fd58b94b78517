package main

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/e2e/load"
)

const (
	memoryName = "memory"
	leftName   = "memory, made and deleted again"
	// leftAfter is how long a system is left alone when all has been made, and when all has been
	// deleted.
	leftAfter = time.Minute
	// settleTime is how long to wait at most for a process to collect its garbage.
	settleTime = 150 * time.Second
)

// weight is what a system needs to know a cluster.
type weight struct {
	load.Footprint
	awake time.Duration // from the start of the process to its first work
	ready time.Duration // and until it says that it is ready, where that is known
	peak  uint64        // the most that it held until its first work
}

func (b *bench) measureEmpty(ctx context.Context, r *report) error {
	b.empty = map[string]weight{}
	for _, s := range b.systems {
		w, err := b.weigh(ctx, s)
		if err != nil {
			return err
		}
		b.empty[s.Name] = w
		r.note(s.Name+", empty", w.figures(load.Footprint{}, 1)...)
	}
	return nil
}

// fill fills the cluster, once. What it is filled with stays.
func (b *bench) fill(ctx context.Context) (err error) {
	if b.full == nil {
		b.say("making objects")
		b.full, err = load.Populate(ctx, b.plane.Config, load.Tree(b.memory))
	}
	return err
}

// filled is how many objects the cluster is filled with.
func (b *bench) filled() int { return len(b.full.Dependents) + 1 }

func (b *bench) measureFull(ctx context.Context, r *report) error {
	if err := b.fill(ctx); err != nil {
		return err
	}
	for _, s := range b.systems {
		w, err := b.weigh(ctx, s)
		if err != nil {
			return err
		}
		r.note(fmt.Sprintf("%s, %d objects", s.Name, b.filled()), w.figures(b.empty[s.Name].Footprint, b.filled())...)
	}
	return nil
}

func (b *bench) weigh(ctx context.Context, s load.System) (w weight, err error) {
	err = b.while(ctx, s, func(running *load.Running, awake time.Duration) (err error) {
		w.awake, w.ready = awake, running.Ready
		if w.peak, err = load.Highest(running.Child); err != nil {
			return err
		}
		w.Footprint, err = load.Settle(ctx, running, settleTime)
		return err
	})
	return w, err
}

// figures are those of n objects, above what is held without them.
func (w weight) figures(empty load.Footprint, n int) []figure {
	each := func(full, empty uint64) float64 { return (float64(full) - float64(empty)) / float64(n) }
	return []figure{{"RSS, MB", mb(w.RSS)}, {"each, B", each(w.RSS, empty.RSS)}, {"heap, MB", mb(w.Heap)},
		{"heap each, B", each(w.Heap, empty.Heap)},
		{"RSS while starting, of it", float64(w.peak) / float64(w.RSS)}, {"first work after, s", w.awake.Seconds()}}
}

func mb(bytes uint64) float64 { return float64(bytes) / 1e6 }

// measureLeft makes objects while a system runs, leaves it alone for a minute, has it delete them,
// and leaves it alone for another.
func (b *bench) measureLeft(ctx context.Context, r *report) error {
	for _, s := range b.systems {
		err := b.while(ctx, s, func(running *load.Running, _ time.Duration) error { return b.leftBy(ctx, r, s, running) })
		if err != nil {
			return fmt.Errorf("by %s: %w", s.Name, err)
		}
	}
	return nil
}

func (b *bench) leftBy(ctx context.Context, r *report, s load.System, running *load.Running) (err error) {
	var p *load.Population
	var figures []figure
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"RSS before, MB", func() error { return nil }},
		{fmt.Sprintf("with %d objects", b.memory), func() (err error) {
			p, err = load.Populate(ctx, b.plane.Config, load.Tree(b.memory))
			return err
		}},
		{"a minute later", func() error { return load.Pause(ctx, leftAfter) }},
		{"a minute after they were deleted", func() error {
			_, err := load.Cascade(ctx, b.plane.Config, b.plane.Metrics, p, metav1.DeletePropagationBackground)
			if err == nil {
				err = load.Pause(ctx, leftAfter)
			}
			return err
		}},
	} {
		if err := step.do(); err != nil {
			return err
		}
		rss, err := load.Resident(running.Child)
		if err != nil {
			return err
		}
		figures = append(figures, figure{step.name, mb(rss)})
	}
	r.note(s.Name, figures...)
	return nil
}
