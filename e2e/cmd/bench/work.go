package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/weir-dev/weir/e2e/load"
	"github.com/weir-dev/weir/e2e/plane"
)

type bench struct {
	options
	started time.Time
	row     string        // is being measured
	due     time.Duration // after the start: until when rounds of it may begin
	short   []string      // rows with fewer rounds than were asked for
	plane   *plane.Plane
	cfg     *rest.Config // the floor's; the same identity as Weir's
	// kubeconfig is of that identity.
	kubeconfig string

	systems         []load.System // in the order in which they take turns
	lifted, limited load.System

	empty map[string]weight // of each system, in a cluster with nothing in it
	full  *load.Population  // once it was measured
}

// work is one thing to measure.
type work struct {
	name   string
	layout func(int) load.Layout
	policy metav1.DeletionPropagation
	// byDefault says that the reference is measured at its limits as well.
	byDefault bool
	slow      bool // one round is enough for the reference
}

var works = []work{
	{"background, flat", load.Flat, metav1.DeletePropagationBackground, true, false},
	{"background, tree", load.Tree, metav1.DeletePropagationBackground, false, true},
	{"background, custom resources", load.Custom, metav1.DeletePropagationBackground, false, true},
	{"foreground, flat", load.Flat, metav1.DeletePropagationForeground, true, false},
	{"foreground, tree", load.Tree, metav1.DeletePropagationForeground, false, true},
	{"foreground, custom resources", load.Custom, metav1.DeletePropagationForeground, false, true},
	{"orphan, flat", load.Flat, metav1.DeletePropagationOrphan, true, false},
	{"orphan, custom resources", load.Custom, metav1.DeletePropagationOrphan, false, true},
}

const digest = load.Digest

// runWork compares one kind of work, and measures it at the limits that a Weir has by default.
func (b *bench) runWork(ctx context.Context, w work, r *report) error {
	floor := func(ctx context.Context) (load.Result, error) { return b.floor(ctx, w, b.n) }
	do := func(ctx context.Context, s load.System) (load.Result, error) { return b.cascade(ctx, w, s, b.n) }
	err := b.betweenFloors(ctx, r, b.systems, w.slow, floor, do)
	if err != nil || !w.byDefault || b.defaultN == 0 {
		return err
	}
	got, err := b.cascade(ctx, w, b.limited, b.defaultN)
	if err == nil {
		r.note(b.limited.Name, figure{"objects/s", got.Rate()})
	}
	return err
}

// inRound are the systems that are measured in a round, which counts from 0. A slow work takes the
// reference two or three times as long as Weir, so the reference does it in the first round only,
// unless it is measured alone. An older Weir does it in all. In every second round the last is the
// first: who comes first finds the control plane in another state than who comes after it.
func inRound(systems []load.System, round int, slow bool) []load.System {
	if slow && round > 0 && systems[len(systems)-1].Name != weirBefore {
		return systems[:1]
	}
	systems = slices.Clone(systems)
	if round%2 == 1 {
		slices.Reverse(systems)
	}
	return systems
}

// betweenFloors takes the systems in turns, with a floor before and after each: what else the
// machine does at the time hits both, and their ratio stands.
func (b *bench) betweenFloors(ctx context.Context, r *report, systems []load.System, slow bool,
	floor func(context.Context) (load.Result, error), do func(context.Context, load.System) (load.Result, error),
) error {
	before, err := floor(ctx)
	if err != nil {
		return err
	}
	for round := range b.inTime(b.rounds) {
		for _, s := range inRound(systems, round, slow) {
			got, err := do(ctx, s)
			if err != nil {
				return fmt.Errorf("by %s: %w", s.Name, err)
			}
			after, err := floor(ctx)
			if err != nil {
				return err
			}
			mean := (before.Rate() + after.Rate()) / 2
			r.note(s.Name, figure{"objects/s", got.Rate()}, figure{"of the floor", got.Rate() / mean},
				figure{"requests each", got.PerObject()}, figure{"first after, ms", milliseconds(got.First)},
				figure{"took, s", got.Took.Seconds()},
				figure{"floor before, objects/s", before.Rate()}, figure{"after", after.Rate()})
			before = after
		}
	}
	return nil
}

func (b *bench) floor(ctx context.Context, w work, n int) (load.Result, error) {
	p, err := b.populate(ctx, w.layout(n))
	if err != nil {
		return load.Result{}, err
	}
	result, err := load.Measure(ctx, b.plane.Config, p, w.policy, func(ctx context.Context) error {
		return load.Floor(ctx, b.cfg, p, w.policy)
	})
	if err != nil {
		return result, err
	}
	return result, load.Clean(ctx, b.plane.Config, p)
}

// populate makes a population, and leaves the API server alone for a moment.
func (b *bench) populate(ctx context.Context, layout load.Layout) (*load.Population, error) {
	p, err := load.Populate(ctx, b.plane.Config, layout)
	if err == nil {
		err = load.Pause(ctx, digest)
	}
	return p, err
}

// cascade starts the system on a cluster that holds the population already, so that no time of its
// discovery is measured.
func (b *bench) cascade(ctx context.Context, w work, s load.System, n int) (result load.Result, err error) {
	p, err := load.Populate(ctx, b.plane.Config, w.layout(n))
	if err != nil {
		return result, err
	}
	err = b.while(ctx, s, func(*load.Running, time.Duration) error {
		result, err = load.Cascade(ctx, b.plane.Config, b.plane.Metrics, p, w.policy)
		return err
	})
	if err != nil {
		return result, err
	}
	return result, load.Clean(ctx, b.plane.Config, p)
}

// while does something while a system runs, which worked for the first time after awake.
func (b *bench) while(ctx context.Context, s load.System,
	do func(running *load.Running, awake time.Duration) error) error {
	running, awake, err := load.StartAwake(ctx, b.plane.Config, s)
	if err != nil {
		return err
	}
	defer b.stop(running)
	if err := load.Pause(ctx, digest); err != nil {
		return err
	}
	return do(running, awake)
}

// stop ends a system. What was measured stands when it does not end well.
func (b *bench) stop(running *load.Running) {
	if err := running.Stop(); err != nil {
		b.say("%v", err)
	}
}

func milliseconds(d time.Duration) float64 { return d.Seconds() * 1000 }

// say tells the progress, with the time since the start: silence looks like a hang.
func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "bench: %4.0f s  %s\n", time.Since(b.started).Seconds(), fmt.Sprintf(format, args...))
}
