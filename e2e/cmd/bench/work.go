package main

import (
	"context"
	"fmt"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/weir-dev/weir/e2e/load"
	"github.com/weir-dev/weir/e2e/plane"
)

type bench struct {
	options
	started time.Time
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

func (b *bench) run(ctx context.Context, r *report) error {
	if b.memory > 0 && b.only.MatchString(memoryName) {
		if err := b.measureEmpty(ctx, r); err != nil {
			return err
		}
	}
	for _, w := range works {
		if b.only.MatchString(w.name) {
			if err := b.runWork(ctx, w, r); err != nil {
				return err
			}
		}
	}
	if b.coOwners > 0 && b.only.MatchString("start, co-owners") {
		if err := b.measureCoOwners(ctx, r); err != nil {
			return fmt.Errorf("start, co-owners: %w", err)
		}
	}
	for _, d := range b.drainings() {
		if !b.only.MatchString(d.name) {
			continue
		}
		if err := b.compareDraining(ctx, d, r); err != nil {
			return fmt.Errorf("%s: %w", d.name, err)
		}
	}
	if b.only.MatchString(neighbourName) {
		if err := b.measureNeighbour(ctx, r); err != nil {
			return fmt.Errorf("%s: %w", neighbourName, err)
		}
	}
	if b.weir != "" && b.only.MatchString(apartName) {
		if err := b.measureApart(ctx, r); err != nil {
			return fmt.Errorf("%s: %w", apartName, err)
		}
	}
	if b.weir != "" {
		if err := b.runReviewed(ctx, r); err != nil {
			return err
		}
	}
	return b.runLong(ctx, r)
}

// runWork compares one kind of work, and measures it at the limits that a Weir has by default.
func (b *bench) runWork(ctx context.Context, w work, r *report) error {
	if err := b.compare(ctx, w, r); err != nil {
		return fmt.Errorf("%s: %w", w.name, err)
	}
	if !w.byDefault || b.defaultN == 0 {
		return nil
	}
	got, err := b.cascade(ctx, w, b.limited, b.defaultN)
	if err != nil {
		return fmt.Errorf("%s by %s: %w", w.name, b.limited.Name, err)
	}
	r.limited[w.name] = got
	b.say("%s: %s %.0f/s over %d", w.name, b.limited.Name, got.Rate(), b.defaultN)
	return nil
}

// runReviewed measures what requests and deletions take that a Weir judges.
func (b *bench) runReviewed(ctx context.Context, r *report) error {
	for _, a := range admittings {
		if !b.only.MatchString(a.name) {
			continue
		}
		if err := b.compareAdmitting(ctx, a, r); err != nil {
			return fmt.Errorf("%s: %w", a.name, err)
		}
	}
	for _, e := range enforcings {
		if !b.only.MatchString(e.name) {
			continue
		}
		if err := b.compareEnforcing(ctx, e, r); err != nil {
			return fmt.Errorf("%s: %w", e.name, err)
		}
	}
	if b.only.MatchString(braked) {
		if err := b.measureBrake(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// runLong measures what is held in memory, and what takes its time.
func (b *bench) runLong(ctx context.Context, r *report) error {
	if b.only.MatchString(followingName) {
		if err := b.measureFollowing(ctx, r); err != nil {
			return fmt.Errorf("%s: %w", followingName, err)
		}
	}
	if b.weir != "" && b.only.MatchString(shadowName) {
		if err := b.measureShadow(ctx, r); err != nil {
			return fmt.Errorf("%s: %w", shadowName, err)
		}
	}
	if b.memory > 0 && b.only.MatchString(leftName) {
		if err := b.measureLeft(ctx, r); err != nil {
			return fmt.Errorf("%s: %w", leftName, err)
		}
	}
	if err := b.runFull(ctx, r); err != nil {
		return err
	}
	// The last: the finalizers that were added stay when Weir has gone.
	if b.weir != "" && b.coOwners > 0 && b.only.MatchString("back-fill") {
		if err := b.measureBackFill(ctx, r); err != nil {
			return fmt.Errorf("back-fill: %w", err)
		}
	}
	return nil
}

// runFull measures what there is to a cluster that is full. What it is filled with stays.
func (b *bench) runFull(ctx context.Context, r *report) error {
	weighs, asks := b.only.MatchString(memoryName), b.plugin != "" && b.only.MatchString(askingName)
	if b.memory == 0 || !weighs && !asks {
		return nil
	}
	if err := b.fill(ctx, r); err != nil {
		return err
	}
	if weighs {
		if err := b.measureFull(ctx, r); err != nil {
			return err
		}
	}
	if asks {
		if err := b.measureAsking(ctx, r); err != nil {
			return fmt.Errorf("%s: %w", askingName, err)
		}
	}
	return nil
}

func (b *bench) roundsOf(slow bool) int {
	if b.quick && slow {
		return 1
	}
	return b.rounds
}

// inRound are the systems that are measured in a round, which counts from 0. A slow work takes the reference two or three times as long as Weir,
// so the reference does it in the first round only, unless it is measured alone. An older Weir does it in all.
func inRound(systems []load.System, round int, slow bool) []load.System {
	if slow && round > 0 && systems[len(systems)-1].Name != weirBefore {
		return systems[:1]
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
	for round := range b.roundsOf(w.slow) {
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
