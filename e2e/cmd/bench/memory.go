package main

import (
	"context"
	"fmt"
	"time"

	"github.com/weir-dev/weir/e2e/load"
)

const memoryName = "memory"

// weight is what a system needs to know a cluster.
type weight struct {
	load.Footprint
	awake time.Duration // from the start of the process to its first work
}

func (b *bench) measureEmpty(ctx context.Context, r *report) error {
	for _, s := range b.systems {
		w, err := b.weigh(ctx, s)
		if err != nil {
			return err
		}
		r.empty[s.Name] = w
		b.say("memory of %s, empty: %s", s.Name, w)
	}
	return nil
}

// fill fills the cluster, once. What it is filled with stays.
func (b *bench) fill(ctx context.Context, r *report) (err error) {
	if b.full != nil {
		return nil
	}
	layout := load.Tree(b.memory)
	b.say("making %d objects", layout.Dependents()+1)
	r.objects = layout.Dependents() + 1
	b.full, err = load.Populate(ctx, b.plane.Config, layout)
	return err
}

func (b *bench) measureFull(ctx context.Context, r *report) error {
	if err := b.fill(ctx, r); err != nil {
		return err
	}
	for _, s := range b.systems {
		w, err := b.weigh(ctx, s)
		if err != nil {
			return err
		}
		r.full[s.Name] = w
		b.say("memory of %s, %d objects: %s", s.Name, r.objects, w)
	}
	return nil
}

func (b *bench) weigh(ctx context.Context, s load.System) (weight, error) {
	running, awake, err := load.StartAwake(ctx, b.plane.Config, s)
	if err != nil {
		return weight{}, err
	}
	f, err := load.Settle(ctx, running, b.settle)
	if stopErr := running.Stop(); stopErr != nil {
		b.say("%v", stopErr)
	}
	return weight{f, awake}, err
}

func (w weight) String() string {
	return fmt.Sprintf("RSS %.1f MB, heap %.1f MB, first work after %.2f s", mb(w.RSS), mb(w.Heap), w.awake.Seconds())
}

func mb(bytes uint64) float64 { return float64(bytes) / 1e6 }
