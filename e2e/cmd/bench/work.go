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

	full *load.Population // once it was measured

	// The same for the namespace works.
	drainers       []load.System
	limitedDrainer load.System
	// collectingDrainer is the reference among drainers, with its collector beside it.
	collectingDrainer load.System
}

// work is one thing to measure.
type work struct {
	name   string
	layout func(int) load.Layout
	policy metav1.DeletionPropagation
	// byDefault says that the reference is measured at its limits as well.
	byDefault bool
	slow      bool // one round is enough for --quick, and for the reference
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
	if err := b.compare(ctx, w, r); err != nil {
		return err
	}
	if !w.byDefault || b.defaultN == 0 {
		return nil
	}
	got, err := b.cascade(ctx, w, b.limited, b.defaultN)
	if err != nil {
		return fmt.Errorf("by %s: %w", b.limited.Name, err)
	}
	r.limited[w.name] = got
	b.say("%s: %s %.0f/s over %d", w.name, b.limited.Name, got.Rate(), b.defaultN)
	return nil
}

func (b *bench) roundsOf(slow bool) int {
	if b.quick && slow {
		return 1
	}
	return b.rounds
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

// compare takes the systems in turns, with a floor before and after each: what
// else the machine does at the time hits both, and their ratio stands.
func (b *bench) compare(ctx context.Context, w work, r *report) error {
	before, err := b.floor(ctx, w)
	if err != nil {
		return err
	}
	for round := range b.inTime(b.roundsOf(w.slow)) {
		for _, s := range inRound(b.systems, round, w.slow) {
			got, err := b.cascade(ctx, w, s, b.n)
			if err != nil {
				return fmt.Errorf("by %s: %w", s.Name, err)
			}
			after, err := b.floor(ctx, w)
			if err != nil {
				return err
			}
			x := sample{system: s.Name, before: before, measured: got, after: after}
			r.samples[w.name] = append(r.samples[w.name], x)
			b.say("%s, round %d: floor %.0f/s, %s %.0f/s, floor %.0f/s: %.2f; %.2f requests each %v", w.name, round+1,
				before.Rate(), s.Name, got.Rate(), after.Rate(), x.share(), got.PerObject(), got.Requests)
			before = after
		}
	}
	return nil
}

func (b *bench) floor(ctx context.Context, w work) (load.Result, error) {
	p, err := load.Populate(ctx, b.plane.Config, w.layout(b.n))
	if err != nil {
		return load.Result{}, err
	}
	if err := load.Pause(ctx, digest); err != nil {
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

// cascade starts the system on a cluster that holds the population already,
// so that no time of its discovery is measured.
func (b *bench) cascade(ctx context.Context, w work, s load.System, n int) (load.Result, error) {
	p, err := load.Populate(ctx, b.plane.Config, w.layout(n))
	if err != nil {
		return load.Result{}, err
	}
	running, _, err := load.StartAwake(ctx, b.plane.Config, s)
	if err != nil {
		return load.Result{}, err
	}
	var result load.Result
	if err = load.Pause(ctx, digest); err == nil {
		result, err = b.taking(running.Child, s.Name, func() (load.Result, error) {
			return load.Cascade(ctx, b.plane.Config, b.plane.Metrics, p, w.policy)
		})
	}
	stopErr := running.Stop()
	if err != nil {
		return result, err
	}
	if stopErr != nil {
		b.say("%v", stopErr)
	}
	return result, load.Clean(ctx, b.plane.Config, p)
}

// taking says what of processor time each process takes for an object meanwhile.
func (b *bench) taking(system *plane.Child, name string, cascade func() (load.Result, error)) (load.Result, error) {
	processes := []*plane.Child{system, b.plane.Child(plane.APIServer), b.plane.Child(plane.Etcd)}
	before, err := taken(processes)
	if err != nil {
		return load.Result{}, err
	}
	result, err := cascade()
	if err != nil {
		return result, err
	}
	after, err := taken(processes)
	if err != nil {
		return result, err
	}
	for i := range after {
		after[i] = (after[i] - before[i]) * 1e6 / float64(result.Dependents)
	}
	b.say("CPU of an object: %s %.0f µs, API server %.0f µs, etcd %.0f µs; %.0f requests under way in the API server", name, after[0], after[1], after[2], result.UnderWay)
	return result, nil
}

func taken(processes []*plane.Child) ([]float64, error) {
	seconds := make([]float64, len(processes))
	for i, p := range processes {
		var err error
		if seconds[i], err = load.CPU(p); err != nil {
			return nil, err
		}
	}
	return seconds, nil
}

// say tells the progress, with the time since the start: silence looks like a
// hang.
func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "bench: %4.0f s  %s\n", time.Since(b.started).Seconds(), fmt.Sprintf(format, args...))
}
