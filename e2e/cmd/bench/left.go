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
	leftName = "memory, made and deleted again"
	// leftAfter is how long a system is left alone when all has been made, and when all has been
	// deleted.
	leftAfter = time.Minute
)

// left is what a process takes before, with, and after objects that came and went while it ran.
// With them that is when the last was made, and at rest.
type left struct{ before, with, rest, after load.Footprint }

// measureLeft makes objects while a system runs, leaves it alone for a minute, has it delete them,
// and leaves it alone for another.
func (b *bench) measureLeft(ctx context.Context, r *report) error {
	for _, s := range b.systems {
		l, err := b.leftBy(ctx, s)
		if err != nil {
			return fmt.Errorf("by %s: %w", s.Name, err)
		}
		r.left[s.Name] = l
		b.say("%s, %d objects: %s: RSS (heap) %.1f (%.1f) MB before, %.1f (%.1f) MB with them, %.1f (%.1f) MB a minute later, %.1f (%.1f) MB a minute after they were deleted", leftName, b.memory, s.Name,
			mb(l.before.RSS), mb(l.before.Heap), mb(l.with.RSS), mb(l.with.Heap), mb(l.rest.RSS), mb(l.rest.Heap), mb(l.after.RSS), mb(l.after.Heap))
	}
	return nil
}

func (b *bench) leftBy(ctx context.Context, s load.System) (l left, err error) {
	running, _, err := load.StartAwake(ctx, b.plane.Config, s)
	if err != nil {
		return l, err
	}
	defer func() {
		if stopErr := running.Stop(); stopErr != nil {
			b.say("%v", stopErr)
		}
	}()
	if err := load.Pause(ctx, digest); err != nil {
		return l, err
	}
	if l.before, err = load.Weigh(ctx, running); err != nil {
		return l, err
	}
	p, err := load.Populate(ctx, b.plane.Config, load.Tree(b.memory))
	if err != nil {
		return l, err
	}
	if l.with, err = load.Weigh(ctx, running); err != nil {
		return l, err
	}
	if err := load.Pause(ctx, leftAfter); err != nil {
		return l, err
	}
	if l.rest, err = load.Weigh(ctx, running); err != nil {
		return l, err
	}
	if _, err := load.Cascade(ctx, b.plane.Config, b.plane.Metrics, p, metav1.DeletePropagationBackground); err != nil {
		return l, err
	}
	if err := load.Pause(ctx, leftAfter); err != nil {
		return l, err
	}
	l.after, err = load.Weigh(ctx, running)
	return l, err
}

func (r *report) writeLeft(s *strings.Builder) {
	if len(r.left) == 0 {
		return
	}
	fmt.Fprintf(s, "\n| %d objects, made while it ran and then deleted | RSS before | with them | a minute later | a minute after they were deleted |\n|---|---|---|---|---|\n", r.bench.memory)
	for _, sys := range r.bench.systems {
		l := r.left[sys.Name]
		fmt.Fprintf(s, "| %s | %.1f MB | %.1f MB | %.1f MB | %.1f MB |\n", sys.Name, mb(l.before.RSS), mb(l.with.RSS), mb(l.rest.RSS), mb(l.after.RSS))
	}
}
