package differential

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/e2e/weir"
)

// A Pair is the two sides that are compared.
type Pair struct {
	Reference, Weir *Side
	// Shadow is a weir in shadow mode beside the reference; nil: there is none.
	Shadow *weir.Shadow
	stops  []func()
}

// Stop ends everything that Start started.
func (p *Pair) Stop() {
	for _, stop := range slices.Backward(p.stops) {
		stop()
	}
}

// A Result is what came of one run.
type Result struct {
	World World
	// Steps is after how many operations the sides were compared, and Changes how many of them
	// changed anything.
	Steps, Changes int
	// Explained are the differences that had a cause.
	Explained []Explained
	// Reference and Weir are the states that were compared last.
	Reference, Weir State
	// Failure is the difference that had none, and ended the run.
	Failure *Failure
}

// Explained is a difference with its cause.
type Explained struct {
	Difference
	Step  int
	Cause string
}

// A Failure is a step after which the sides differ without a cause.
type Failure struct {
	Step   int
	Differ []Difference
	Case   Case
	// Wavers says that Weir did something else when the world was run again.
	Wavers bool
}

// clients is how many requests are under way on each side while a step is made.
const clients = 16

// Batch runs worlds, all at the same time, step by step; each name begins with the prefix.
func (p *Pair) Batch(ctx context.Context, worlds []World, prefix string) ([]Result, error) {
	b := &batch{Pair: p, results: make([]Result, len(worlds)), before: map[*run]State{}}
	for i, w := range worlds {
		r := newRun(w, fmt.Sprintf("%s%d", prefix, i))
		b.runs = append(b.runs, r)
		b.results[i].World = w
		b.before[r] = State{}
	}
	err := b.both(func(s *Side) error {
		return b.all(func(r *run) error { return s.enter(ctx, r) })
	})
	for step := 0; err == nil && b.ongoing(step); step++ {
		err = b.step(ctx, step)
	}
	if err != nil {
		return nil, err
	}
	return b.results, b.both(func(s *Side) error {
		return b.all(func(r *run) error { return s.leave(ctx, r) })
	})
}

type batch struct {
	*Pair
	runs    []*run
	results []Result
	before  map[*run]State
}

// both does something on both sides at once.
func (b *batch) both(f func(*Side) error) error {
	var group errgroup.Group
	group.Go(func() error { return f(b.Reference) })
	group.Go(func() error { return f(b.Weir) })
	return group.Wait()
}

func (b *batch) all(f func(*run) error) error {
	var group errgroup.Group
	group.SetLimit(clients)
	for _, r := range b.runs {
		group.Go(func() error { return f(r) })
	}
	return group.Wait()
}

func (b *batch) active(i, step int) bool {
	return b.results[i].Failure == nil && step < len(b.runs[i].Script)
}

func (b *batch) ongoing(step int) bool {
	return slices.ContainsFunc(b.runs, func(r *run) bool { return b.active(slices.Index(b.runs, r), step) })
}

// step makes the next operation of all worlds, and compares.
func (b *batch) step(ctx context.Context, step int) error {
	reference, weir, err := b.after(ctx, func(s *Side, i int) error {
		if !b.active(i, step) {
			return nil
		}
		return s.act(ctx, b.runs[i], b.runs[i].Script[step], step)
	})
	if err != nil {
		return fmt.Errorf("step %d: %w", step, err)
	}
	var todo []int
	cases := make([]Case, len(b.runs))
	for i, r := range b.runs {
		if b.active(i, step) {
			b.results[i].Steps++
			if len(Compare(b.before[r], weir[r])) > 0 {
				b.results[i].Changes++
			}
			todo = append(todo, i)
			cases[i] = Case{Operation: r.Script[step], Before: b.before[r], BeforeReference: b.before[r]}
		}
	}
	for range levels {
		if todo = b.judge(todo, step, cases, reference, weir); len(todo) == 0 {
			return nil
		}
		for _, i := range todo {
			cases[i] = Case{Before: weir[b.runs[i]], BeforeReference: reference[b.runs[i]]}
		}
		differ := map[int][]Difference{}
		for _, i := range todo {
			differ[i] = Compare(reference[b.runs[i]], weir[b.runs[i]])
		}
		reference, weir, err = b.after(ctx, func(s *Side, i int) error { return b.level(ctx, s, b.runs[i], differ[i]) })
		if err != nil {
			return fmt.Errorf("level after step %d: %w", step, err)
		}
	}
	for _, i := range todo {
		r := b.runs[i]
		if differ := Compare(reference[r], weir[r]); len(differ) > 0 {
			b.results[i].Failure = &Failure{Step: step, Differ: differ, Case: cases[i]}
		}
	}
	return nil
}

// levels is how often a world is levelled after a step: what is undone may set off something that
// differs, too.
const levels = 5

// judge compares runs, and returns those that differ with a cause.
func (b *batch) judge(runs []int, step int, cases []Case, reference, weir map[*run]State) []int {
	var differing []int
	for _, i := range runs {
		r, result, c := b.runs[i], &b.results[i], cases[i]
		c.Reference, c.Weir, c.Orphaned, c.Namespaces = reference[r], weir[r], b.orphaned(r, step), r.namespaces
		b.before[r], result.Reference, result.Weir = weir[r], reference[r], weir[r]
		differ := Compare(c.Reference, c.Weir)
		if len(differ) == 0 {
			continue
		}
		causes, ok := c.explain(differ)
		if !ok {
			result.Failure = &Failure{Step: step, Differ: differ, Case: c}
			continue
		}
		for n, d := range differ {
			result.Explained = append(result.Explained, Explained{d, step, causes[n]})
		}
		differing = append(differing, i)
	}
	return differing
}

// orphaned are the objects that were deleted with orphan so far, by a user or because they were
// made for it.
func (b *batch) orphaned(r *run, step int) map[string]bool {
	names := map[string]bool{}
	for _, o := range r.Script[:step+1] {
		if o.Policy == metav1.DeletePropagationOrphan || o.Finalizer == metav1.FinalizerOrphanDependents {
			names[o.Object] = true
		}
	}
	return names
}

// level makes a world the same on both sides again: as it is under Weir, or, where that cannot be
// had, without what differs.
func (b *batch) level(ctx context.Context, s *Side, r *run, differ []Difference) error {
	for _, d := range differ {
		switch {
		case d.Reference == nil || d.Weir == nil || d.Reference.Terminating != d.Weir.Terminating || d.lacks():
			if err := s.erase(ctx, r, d.Name); err != nil {
				return err
			}
		case s == b.Reference:
			if err := s.change(ctx, r, d.Name, func(m *metav1.PartialObjectMetadata) {
				m.OwnerReferences, m.Finalizers = s.written(r, d.Weir.Owners), d.Weir.Finalizers
			}); err != nil {
				return err
			}
		}
	}
	return nil
}

// lacks tells whether an object has lost a finalizer that it cannot be given again: no API server
// adds one to what terminates.
func (d Difference) lacks() bool {
	return d.Weir.Terminating && slices.ContainsFunc(d.Weir.Finalizers, func(f string) bool { return !slices.Contains(d.Reference.Finalizers, f) })
}

// after does something with all runs on both sides, and returns their states once both have
// settled.
func (b *batch) after(ctx context.Context, act func(*Side, int) error) (reference, weir map[*run]State, err error) {
	var mu sync.Mutex
	err = b.both(func(s *Side) error {
		var group errgroup.Group
		group.SetLimit(clients)
		for i := range b.runs {
			group.Go(func() error { return act(s, i) })
		}
		if err := group.Wait(); err != nil {
			return err
		}
		var listed []metav1.PartialObjectMetadata
		listed, err := s.settle(ctx)
		if err != nil {
			return err
		}
		states, err := s.states(listed)
		mu.Lock()
		defer mu.Unlock()
		if s == b.Reference {
			reference = states
		} else {
			weir = states
		}
		return err
	})
	return reference, weir, err
}
