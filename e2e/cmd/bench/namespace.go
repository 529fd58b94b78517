package main

import (
	"context"
	"fmt"

	"github.com/weir-dev/weir/e2e/load"
)

// A draining is one thing to measure about namespaces.
type draining struct {
	name       string
	namespaces int
	configMaps int // in each, besides its furniture
	owned      int // by the first of each owned+1 of them; 0: none is
	byDefault  bool
}

const (
	emptyNamespace = "empty namespace"
	// treeSize is how many ConfigMaps there are to an owner, with it.
	treeSize = 10
	// contentEach is what each of many namespaces holds, with its furniture.
	contentEach = 50
)

func (b *bench) drainings() []draining {
	ds := []draining{{name: emptyNamespace, namespaces: 1}}
	if b.namespaceN > 0 {
		ds = append(ds, draining{name: fmt.Sprintf("namespace with %d ConfigMaps", b.namespaceN), namespaces: 1,
			configMaps: b.namespaceN})
		for _, owned := range []int{b.namespaceN/2 - 1, treeSize - 1} {
			name := fmt.Sprintf("namespace with %d ConfigMaps, each %dth owns the next %d", b.namespaceN/2, owned+1, owned)
			ds = append(ds, draining{name: name, namespaces: 1, configMaps: b.namespaceN / 2, owned: owned})
		}
	}
	if b.namespaces > 0 {
		name := fmt.Sprintf("%d namespaces with %d objects each", b.namespaces, contentEach)
		ds = append(ds, draining{name: name, namespaces: b.namespaces, configMaps: contentEach - load.Furniture,
			byDefault: true})
	}
	return ds
}

// compareDraining takes the systems in turns, as runWork does.
func (b *bench) compareDraining(ctx context.Context, d draining, r *report) error {
	if d.name == emptyNamespace { // there is nothing to be fast with
		return b.compareEmpty(ctx, d, r)
	}
	floor := func(ctx context.Context) (load.Result, error) { return b.floorOfContent(ctx, d) }
	do := func(ctx context.Context, s load.System) (load.Result, error) { return b.drain(ctx, d, s) }
	err := b.betweenFloors(ctx, r, b.systems, true, floor, do)
	if err != nil || !d.byDefault || b.defaultN == 0 {
		return err
	}
	got, err := b.drain(ctx, d, b.limited)
	if err == nil {
		r.note(b.limited.Name, figure{"took, s", got.Took.Seconds()})
	}
	return err
}

// compareEmpty tells time and requests.
func (b *bench) compareEmpty(ctx context.Context, d draining, r *report) error {
	for round := range b.inTime(b.rounds) {
		for _, s := range inRound(b.systems, round, false) {
			got, err := b.drain(ctx, d, s)
			if err != nil {
				return fmt.Errorf("by %s: %w", s.Name, err)
			}
			r.note(s.Name, figure{"gone after, ms", milliseconds(got.Took)}, figure{"requests", got.Requests.Total()})
		}
	}
	return nil
}

func (b *bench) furnish(ctx context.Context, d draining) (*load.Batch, error) {
	return load.Furnish(ctx, b.plane.Config, d.namespaces, d.configMaps, d.owned)
}

func (b *bench) floorOfContent(ctx context.Context, d draining) (load.Result, error) {
	batch, err := b.furnish(ctx, d)
	if err == nil {
		err = load.Pause(ctx, digest)
	}
	if err != nil {
		return load.Result{}, err
	}
	result, err := load.FloorOfContent(ctx, b.cfg, batch)
	if err != nil {
		return result, err
	}
	return result, load.Raze(ctx, b.plane.Config, batch)
}

// drain starts the system on a cluster that holds the namespaces already.
func (b *bench) drain(ctx context.Context, d draining, s load.System) (result load.Result, err error) {
	batch, err := b.furnish(ctx, d)
	if err != nil {
		return result, err
	}
	running, err := load.StartDraining(ctx, b.plane.Config, s)
	if err != nil {
		return result, err
	}
	defer b.stop(running)
	if err := load.Pause(ctx, digest); err != nil {
		return result, err
	}
	return load.Drain(ctx, b.plane.Config, b.plane.Metrics, batch)
}
