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
	// repeat is how often it is measured for one start of a system.
	repeat    int
	floor     bool
	byDefault bool
}

const (
	emptyNamespace = "empty namespace"
	// emptyRepeat is small: the reference takes five seconds for each.
	emptyRepeat = 3
	// treeSize is how many ConfigMaps there are to an owner, with it.
	treeSize = 10
	// contentEach is what each of many namespaces holds, with its furniture.
	contentEach = 50
	// namespaceSyncs is --concurrent-namespace-syncs of the reference whose
	// limits are lifted; the default of 10 would limit it, too.
	namespaceSyncs = 64
)

func (b *bench) drainings() []draining {
	ds := []draining{{name: emptyNamespace, namespaces: 1, repeat: emptyRepeat}}
	if b.namespaceN > 0 {
		ds = append(ds, draining{
			name:       fmt.Sprintf("namespace with %d ConfigMaps", b.namespaceN),
			namespaces: 1, configMaps: b.namespaceN, repeat: 1, floor: true,
		})
		for _, owned := range []int{b.namespaceN/2 - 1, treeSize - 1} {
			ds = append(ds, draining{
				name:       fmt.Sprintf("namespace with %d ConfigMaps, each %dth owns the next %d", b.namespaceN/2, owned+1, owned),
				namespaces: 1, configMaps: b.namespaceN / 2, owned: owned, repeat: 1, floor: true,
			})
		}
	}
	if b.namespaces > 0 {
		ds = append(ds, draining{
			name:       fmt.Sprintf("%d namespaces with %d objects each", b.namespaces, contentEach),
			namespaces: b.namespaces, configMaps: contentEach - load.Furniture, repeat: 1, floor: true, byDefault: true,
		})
	}
	return ds
}

// compareDraining takes the systems in turns, as compare does.
func (b *bench) compareDraining(ctx context.Context, d draining, r *report) error {
	before, err := b.floorOfContent(ctx, d)
	if err != nil {
		return err
	}
	for round := range b.inTime(b.roundsOf(true)) {
		for _, s := range inRound(b.drainers, round, true) {
			if d.owned > 0 && s.Name == b.collectingDrainer.Name { // what is owned is garbage, too
				s = b.collectingDrainer
			}
			results, err := b.drain(ctx, d, s)
			if err != nil {
				return fmt.Errorf("by %s: %w", s.Name, err)
			}
			after, err := b.floorOfContent(ctx, d)
			if err != nil {
				return err
			}
			for _, got := range results {
				x := sample{system: s.Name, before: before, measured: got, after: after}
				r.samples[d.name] = append(r.samples[d.name], x)
				b.say("%s, round %d: %s", d.name, round+1, x.drained())
			}
			before = after
		}
	}
	if !d.byDefault || b.defaultN == 0 {
		return nil
	}
	results, err := b.drain(ctx, d, b.limitedDrainer)
	if err != nil {
		return fmt.Errorf("by %s: %w", b.limitedDrainer.Name, err)
	}
	r.limited[d.name] = results[0]
	b.say("%s: %s %.2f s", d.name, b.limitedDrainer.Name, results[0].Took.Seconds())
	return nil
}

func (s sample) drained() string {
	text := fmt.Sprintf("%s %.2f s; %.0f requests %v", s.system, s.measured.Took.Seconds(), s.measured.Requests.Total(), s.measured.Requests)
	if s.before.Dependents == 0 {
		return text
	}
	return fmt.Sprintf("floor %.0f/s, %s, %.0f/s, floor %.0f/s: %.2f",
		s.before.Rate(), text, s.measured.Rate(), s.after.Rate(), s.share())
}

// floorOfContent is nothing where a work has no floor.
func (b *bench) floorOfContent(ctx context.Context, d draining) (load.Result, error) {
	if !d.floor {
		return load.Result{}, nil
	}
	batch, err := load.Furnish(ctx, b.plane.Config, d.namespaces, d.configMaps, d.owned)
	if err != nil {
		return load.Result{}, err
	}
	if err := load.Pause(ctx, digest); err != nil {
		return load.Result{}, err
	}
	result, err := load.FloorOfContent(ctx, b.cfg, batch)
	if err != nil {
		return result, err
	}
	return result, load.Raze(ctx, b.plane.Config, batch)
}

// drain starts the system on a cluster that holds the namespaces already, and
// measures them one batch after the other.
func (b *bench) drain(ctx context.Context, d draining, s load.System) ([]load.Result, error) {
	batches := make([]*load.Batch, d.repeat)
	for i := range batches {
		var err error
		if batches[i], err = load.Furnish(ctx, b.plane.Config, d.namespaces, d.configMaps, d.owned); err != nil {
			return nil, err
		}
	}
	running, err := load.StartDraining(ctx, b.plane.Config, s)
	if err != nil {
		return nil, err
	}
	var results []load.Result
	err = load.Pause(ctx, digest)
	for i := 0; i < d.repeat && err == nil; i++ {
		var got load.Result
		if got, err = load.Drain(ctx, b.plane.Config, b.plane.Metrics, batches[i]); err == nil {
			results = append(results, got)
		}
	}
	if stopErr := running.Stop(); stopErr != nil {
		b.say("%v", stopErr)
	}
	return results, err
}
