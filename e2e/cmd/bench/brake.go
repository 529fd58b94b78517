package main

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/e2e/load"
)

// braked is the work that tells what the brake costs the built-in collector.
const braked = "background cascade of the built-in collector, whose deletes the brake sees"

// measureBrake has the built-in collector, whose limits are lifted, collect what its owner's delete
// asks for: all of it goes, and the API server asks the webhook before each delete.
func (b *bench) measureBrake(ctx context.Context, r *report) error {
	for range b.inTime(b.rounds) {
		if err := b.braking(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) braking(ctx context.Context, r *report) (err error) {
	dir, err := b.enforcedPolicy("Foreground") // about nothing that is there: it shows that the webhook is asked
	if err != nil {
		return err
	}
	collector, _, err := load.StartAwake(ctx, b.plane.Config, b.lifted)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, collector.Stop()) }()
	cascade := func(ctx context.Context, p *load.Population) (load.Result, error) {
		return load.Cascade(ctx, b.cfg, b.plane.Metrics, p, metav1.DeletePropagationBackground)
	}
	plain, err := b.made(ctx, load.Flat(b.n), cascade)
	if err != nil {
		return err
	}
	g, err := load.StartWeirPair(ctx, b.plane, b.weir, b.kubeconfig, dir, "companion", "--brake-users", garbageCollector)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Stop(ctx)) }()
	with, err := b.made(ctx, load.Flat(b.n), cascade)
	if err != nil {
		return err
	}
	r.note("with the brake", figure{"objects/s", with.Rate()}, figure{"of without", with.Rate() / plain.Rate()},
		figure{"first after, ms", milliseconds(with.First)}, figure{"without", milliseconds(plain.First)})
	return nil
}

// garbageCollector is who the built-in collector is.
const garbageCollector = "system:serviceaccount:kube-system:generic-garbage-collector"
