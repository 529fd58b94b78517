package main

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"

	"github.com/weir-dev/weir/e2e/load"
)

const (
	background = metav1.DeletePropagationBackground
	foreground = metav1.DeletePropagationForeground
	orphan     = metav1.DeletePropagationOrphan
)

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
	{"background, flat", load.Flat, background, true, false},
	{"background, tree", load.Tree, background, false, true},
	{"background, custom resources", load.Custom, background, false, true},
	{"foreground, flat", load.Flat, foreground, true, false},
	{"foreground, tree", load.Tree, foreground, false, true},
	{"foreground, custom resources", load.Custom, foreground, false, true},
	{"orphan, flat", load.Flat, orphan, true, false},
	{"orphan, custom resources", load.Custom, orphan, false, true},
}

// compareWork compares one kind of work, and measures it at the reference's default limits.
func (b *bench) compareWork(ctx context.Context, w work) error {
	err := b.betweenFloors(b.systems, w.slow,
		func() (load.Result, error) { return b.floorOf(ctx, w, b.n) },
		func(s system) (measured, error) { return b.workBy(ctx, w, s, b.n) })
	if err != nil || !w.byDefault {
		return err
	}
	got, err := b.workBy(ctx, w, b.limited, max(1, b.n/25))
	if err == nil {
		b.note(b.limited.name, figure{"objects/s", got.Rate()})
	}
	return err
}

// betweenFloors takes the systems in turns, with a floor before and after each: what else the
// machine does at the time hits both, and their ratio stands.
func (b *bench) betweenFloors(systems []system, slow bool,
	floor func() (load.Result, error), do func(system) (measured, error),
) error {
	before, err := floor()
	if err != nil {
		return err
	}
	for round := range b.inTime(b.rounds) {
		for _, s := range inRound(systems, round, slow) {
			got, err := do(s)
			if err != nil {
				return fmt.Errorf("by %s: %w", s.name, err)
			}
			after, err := floor()
			if err != nil {
				return err
			}
			mean := (before.Rate() + after.Rate()) / 2
			b.note(s.name, figure{"objects/s", got.Rate()}, figure{"of the floor", got.Rate() / mean},
				figure{"requests each", got.perObject()}, figure{"first after, ms", milliseconds(got.First)},
				figure{"took, s", got.Took.Seconds()},
				figure{"floor before, objects/s", before.Rate()}, figure{"after", after.Rate()})
			before = after
		}
	}
	return nil
}

// populate makes a population, and leaves the API server alone for a moment.
func (b *bench) populate(ctx context.Context, layout load.Layout) (*load.Population, error) {
	p, err := load.Populate(ctx, b.Config, layout)
	if err == nil {
		err = pause(ctx, digest)
	}
	return p, err
}

// workBy starts the system on a cluster that holds the population already, so that no time of its
// discovery is measured.
func (b *bench) workBy(ctx context.Context, w work, s system, n int) (m measured, err error) {
	p, err := load.Populate(ctx, b.Config, w.layout(n))
	if err != nil {
		return m, err
	}
	err = b.while(ctx, s, func(*running, time.Duration) error {
		m, err = b.cascade(ctx, b.admin, p, w.policy)
		return err
	})
	if err != nil {
		return m, err
	}
	return m, b.clean(ctx, p)
}

// cascade has somebody delete the owner with a policy, and measures what a running system makes of
// it, with the requests that it sent.
func (b *bench) cascade(ctx context.Context, who clients, p *load.Population, policy metav1.DeletionPropagation) (measured, error) {
	m, err := b.counted(ctx, about(p.Layout.Kind), func() (load.Result, error) {
		return load.Measure(ctx, who.Config, p, policy, func(ctx context.Context) error {
			return who.of(p).Delete(ctx, p.Owner.Name, metav1.DeleteOptions{
				PropagationPolicy: &policy, Preconditions: &metav1.Preconditions{UID: &p.Owner.UID},
			})
		})
	})
	if err == nil {
		m.requests["DELETE"]-- // the owner's, sent here
	}
	return m, err
}

func (b *bench) floorOf(ctx context.Context, w work, n int) (load.Result, error) {
	p, err := b.populate(ctx, w.layout(n))
	if err != nil {
		return load.Result{}, err
	}
	result, err := b.measuredFloor(ctx, b.self, p, w.policy)
	if err != nil {
		return result, err
	}
	return result, b.clean(ctx, p)
}

func (b *bench) measuredFloor(
	ctx context.Context, who clients, p *load.Population, policy metav1.DeletionPropagation,
) (load.Result, error) {
	return load.Measure(ctx, b.Config, p, policy, func(ctx context.Context) error { return floor(ctx, who, p, policy) })
}

// floor does by plain requests what a system has to send at the least: one per object, each with
// the preconditions that make it safe. The driver knows every object beforehand and decides
// nothing, so no collector can be faster by much.
func floor(ctx context.Context, who clients, p *load.Population, policy metav1.DeletionPropagation) error {
	in, one := who.of(p), remove
	if policy == orphan {
		one = release
	}
	if err := remove(ctx, in, p.Owner); err != nil {
		return err
	}
	// From the last to the first: in a tree, dependents before their owner, as a foreground deletion
	// has it.
	n := len(p.Dependents)
	return load.Each(ctx, n, func(ctx context.Context, i int) error { return one(ctx, in, p.Dependents[n-1-i]) })
}

// remove deletes an object as it was when it was made.
func remove(ctx context.Context, in metadata.ResourceInterface, o load.Object) error {
	return in.Delete(ctx, o.Name, metav1.DeleteOptions{PropagationPolicy: new(background),
		Preconditions: &metav1.Preconditions{UID: &o.UID, ResourceVersion: &o.ResourceVersion}})
}

func release(ctx context.Context, in metadata.ResourceInterface, o load.Object) error {
	patch := fmt.Appendf(nil, `{"metadata":{"uid":%q,"resourceVersion":%q,"ownerReferences":null}}`, o.UID, o.ResourceVersion)
	_, err := in.Patch(ctx, o.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// touch changes the data of every dependent to what it never was, and nothing that a webhook of
// weir's judges. The objects must be ConfigMaps.
func touch(ctx context.Context, who clients, p *load.Population) error {
	patch := fmt.Appendf(nil, `{"data":{"touched":%q}}`, time.Now().Format(time.RFC3339Nano))
	return load.Each(ctx, len(p.Dependents), func(ctx context.Context, i int) error {
		_, err := who.of(p).Patch(ctx, p.Dependents[i].Name, types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	})
}

// clean removes what a run left behind, with no system running.
func (b *bench) clean(ctx context.Context, p *load.Population) error {
	in := b.admin.of(p)
	left, err := in.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	return load.Each(ctx, len(left.Items), func(ctx context.Context, i int) error {
		o := &left.Items[i]
		err := in.Delete(ctx, o.Name, metav1.DeleteOptions{PropagationPolicy: new(background)})
		if err == nil && len(o.Finalizers) > 0 {
			_, err = in.Patch(ctx, o.Name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		}
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
}

// coOwnersTime is for how long requests are counted.
const coOwnersTime = 30 * time.Second

// measureCoOwners starts each system in a cluster in which every object has an owner that is there,
// and names another that never was: they are to be looked up, and to come off, but nothing waits
// for it.
func (b *bench) measureCoOwners(ctx context.Context) error {
	b.say("making %d objects, each with an owner that never was", b.many)
	p, err := load.Populate(ctx, b.Config, load.CoOwned(b.many))
	if err != nil {
		return err
	}
	for _, s := range b.systems {
		r, awake, err := b.startAwake(ctx, s)
		if err != nil {
			return err
		}
		m, err := b.counted(ctx, about(load.ConfigMap), func() (load.Result, error) { return load.Result{}, pause(ctx, coOwnersTime) })
		b.end(r)
		if err != nil {
			return err
		}
		b.note(s.name, figure{"first work after, s", awake.Seconds()},
			figure{"lookups/s", m.requests["GET"] / coOwnersTime.Seconds()},
			figure{"references taken off/s", m.requests["PATCH"] / coOwnersTime.Seconds()})
	}
	return b.clean(ctx, p)
}
