package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/weir-dev/weir/e2e/load"
)

// enforcedPolicy is about what carries the label.
func enforcedPolicy(propagation string) string {
	return policy("bench", "DeletionPolicy", fmt.Sprintf("propagation: {default: %s}, match: {resources: [%s]"+
		", objectSelector: {matchLabels: {enforced: \"yes\"}}}", propagation, aboutConfigMaps))
}

// compareEnforcing compares deletions that go as a policy says, by its default, with plain ones,
// without a webhook: in the place of the built-in collector and beside it.
func (b *bench) compareEnforcing(ctx context.Context, propagation string) error {
	for range b.inTime(b.rounds) {
		for _, mode := range []string{"replace", "companion"} {
			if err := b.enforcing(ctx, propagation, mode); err != nil {
				return fmt.Errorf("%s: %w", mode, err)
			}
		}
	}
	return nil
}

func (b *bench) enforcing(ctx context.Context, propagation, mode string) (err error) {
	p, err := b.populate(ctx, load.Loose(b.n, nil))
	if err != nil {
		return err
	}
	plain, err := b.measuredFloor(ctx, b.user, p, background)
	if err != nil {
		return err
	}
	if mode == "companion" {
		r, _, err := b.startAwake(ctx, b.lifted)
		if err != nil {
			return err
		}
		defer b.end(r)
	}
	g, err := b.startPair(ctx, enforcedPolicy(propagation), mode)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.stop(ctx)) }()
	if err := b.awaitFinalizers(ctx, enforced); err != nil {
		return err
	}
	if p, err = b.populate(ctx, load.Loose(b.n, enforced)); err != nil {
		return err
	}
	// The requests are all, the user's among them.
	with, err := b.counted(ctx, about(load.ConfigMap), func() (load.Result, error) { return b.measuredFloor(ctx, b.user, p, background) })
	if err != nil {
		return err
	}
	if p, err = b.populate(ctx, load.Loose(oneByOne, enforced)); err != nil {
		return err
	}
	all, err := b.endings(ctx, p)
	if err != nil {
		return err
	}
	b.note("weir, "+mode, figure{"objects/s", with.Rate()}, figure{"of plain deletes", with.Rate() / plain.Rate()},
		figure{"requests each", with.perObject()}, figure{"first after, ms", milliseconds(with.First)},
		figure{"one alone terminates for, ms", percentile(all.terminated, 50)})
	return nil
}

// oneByOne is how many objects are deleted one by one.
const oneByOne = 100

// endings are what became of objects that were deleted one by one, in milliseconds: after the
// request was sent, and for how long they were seen to terminate; 0: they went at once.
type endings struct{ answered, gone, terminated []float64 }

// endings has the user delete the dependents of a population one by one, each when the one before is
// gone: what the user and whoever holds them take, with nothing else to do.
func (b *bench) endings(ctx context.Context, p *load.Population) (all endings, err error) {
	in := b.admin.of(p)
	list, err := in.List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return all, err
	}
	w, err := in.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		return all, err
	}
	defer w.Stop()
	for _, o := range p.Dependents {
		options := metav1.DeleteOptions{PropagationPolicy: new(background), Preconditions: &metav1.Preconditions{UID: &o.UID}}
		began := time.Now()
		if err := b.user.of(p).Delete(ctx, o.Name, options); err != nil {
			return all, err
		}
		all.answered = append(all.answered, milliseconds(time.Since(began)))
		terminated, err := ending(ctx, w.ResultChan(), o)
		if err != nil {
			return all, fmt.Errorf("time the ending of %s: %w", o.Name, err)
		}
		all.terminated = append(all.terminated, milliseconds(terminated))
		all.gone = append(all.gone, milliseconds(time.Since(began)))
	}
	return all, nil
}

// ending waits until an object is gone, and tells how long it was seen to terminate.
func ending(ctx context.Context, events <-chan watch.Event, o load.Object) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var terminates time.Time
	for {
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case e := <-events:
			m, isObject := e.Object.(*metav1.PartialObjectMetadata)
			switch {
			case !isObject:
				return 0, fmt.Errorf("the watch ended: %v", e.Object)
			case m.UID != o.UID:
			case e.Type != watch.Deleted && m.DeletionTimestamp != nil && terminates.IsZero():
				terminates = time.Now()
			case e.Type == watch.Deleted && terminates.IsZero():
				return 0, nil
			case e.Type == watch.Deleted:
				return time.Since(terminates), nil
			}
		}
	}
}
