package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/e2e/load"
)

// braked is the work that tells what the brake costs the built-in collector.
const braked = "background cascade of the built-in collector, whose deletes the brake sees"

// brakedSample is one round: without Weir, and with it.
type brakedSample struct{ plain, with turn }

// measureBrake has the built-in collector, whose limits are lifted, collect what its owner's delete
// asks for: all of it goes, and the API server asks the webhook before each delete.
func (b *bench) measureBrake(ctx context.Context, r *report) error {
	for round := range b.inTime(b.roundsOf(false)) {
		x, err := b.braking(ctx)
		if err != nil {
			return err
		}
		r.braked = append(r.braked, x)
		b.say("%s, round %d: without %.0f/s, with %.0f/s: %.2f; the first after %s, with %s", braked, round+1, x.plain.Rate(), x.with.Rate(), x.with.Rate()/x.plain.Rate(),
			x.plain.First.Round(time.Millisecond), x.with.First.Round(time.Millisecond))
	}
	return nil
}

func (b *bench) braking(ctx context.Context) (x brakedSample, err error) {
	dir, err := b.enforcedPolicy("Foreground") // about nothing that is there: it shows that the webhook is asked
	if err != nil {
		return x, err
	}
	collector, _, err := load.StartAwake(ctx, b.plane.Config, b.lifted)
	if err != nil {
		return x, err
	}
	defer func() { err = errors.Join(err, collector.Stop()) }()
	cascade := func(ctx context.Context, p *load.Population) (load.Result, error) {
		return load.Cascade(ctx, b.cfg, b.plane.Metrics, p, metav1.DeletePropagationBackground)
	}
	if x.plain, err = b.made(ctx, load.Flat(b.n), cascade); err != nil {
		return x, err
	}
	g, err := load.StartWeirPair(ctx, b.plane, b.weir, b.kubeconfig, dir, "companion", "--brake-users", garbageCollector)
	if err != nil {
		return x, err
	}
	defer func() { err = errors.Join(err, g.Stop(ctx)) }()
	x.with, err = b.made(ctx, load.Flat(b.n), cascade)
	return x, err
}

// garbageCollector is who the built-in collector is.
const garbageCollector = "system:serviceaccount:kube-system:generic-garbage-collector"

func (r *report) writeBraked(s *strings.Builder) {
	if len(r.braked) == 0 {
		return
	}
	of := func(value func(brakedSample) float64) (v []float64) {
		for _, x := range r.braked {
			v = append(v, value(x))
		}
		return v
	}
	s.WriteString("\n| | without, objects/s | with the brake, objects/s | with / without, by round | first after, without | first after, with |\n|---|---|---|---|---|---|\n")
	fmt.Fprintf(s, "| %s | %s | %.0f | %s | %.0f ms | %.0f ms |\n", braked, spread(of(func(x brakedSample) float64 { return x.plain.Rate() })),
		median(of(func(x brakedSample) float64 { return x.with.Rate() })), byRound(of(func(x brakedSample) float64 { return x.with.Rate() / x.plain.Rate() })),
		median(of(func(x brakedSample) float64 { return 1000 * x.plain.First.Seconds() })), median(of(func(x brakedSample) float64 { return 1000 * x.with.First.Seconds() })))
}
