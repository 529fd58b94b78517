package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/weir-dev/weir/e2e/load"
)

const (
	// fillShare is how many hundredths of all time the making of objects may take: with fewer of
	// them all else can still be measured.
	fillShare = 48
	// startRounds is how often a start is measured, by turns with plain lists: rounds differ by
	// the garbage that the API server happens to collect in them.
	startRounds = 3
	// scaleAsks is how many deletes for a trial the webhook is asked about.
	scaleAsks  = 3000
	scaleLease = 15 * time.Second
)

// measureScale measures Weir in a cluster of many objects of many kinds.
func (b *bench) measureScale(ctx context.Context) error {
	ctx, cancel := context.WithDeadline(ctx, b.started.Add(b.limit))
	defer cancel()
	s := b.systems[0]
	empty, err := b.weigh(ctx, s)
	if err != nil {
		return err
	}
	began := time.Now()
	middles, objects, err := b.fillWithKinds(ctx, b.objects, b.started.Add(b.limit*fillShare/100))
	if err != nil {
		return err
	}
	b.note("the API server", figure{"objects", float64(objects)},
		figure{"made a second", float64(objects) / time.Since(began).Seconds()})
	if err := b.asksAtScale(ctx, middles); err != nil {
		return err
	}
	if err := b.startsAtScale(ctx, s, empty, objects); err != nil {
		return err
	}
	w, n := work{layout: load.Tree, policy: background}, max(b.n, objects/20)
	if err := b.failsOver(ctx, w.layout(n)); err != nil {
		return err
	}
	return b.betweenFloors([]system{s}, true,
		func() (load.Result, error) { return b.floorOf(ctx, w, n) },
		func(s system) (measured, error) { return b.workBy(ctx, w, s, n) })
}

// asksAtScale measures what a DELETE takes without the webhook and with it, for a trial, so that all
// objects stay.
func (b *bench) asksAtScale(ctx context.Context, objects []content) (err error) {
	cfg := rest.CopyConfig(b.user.Config)
	cfg.WarningHandler = rest.NoWarnings{} // the webhook says of each what would go
	user, err := as(cfg, "", nil)
	if err != nil {
		return err
	}
	asks := func(who string) error {
		var took []float64
		for k := range scaleAsks {
			o, began := objects[k%len(objects)], time.Now()
			err := user.metadata.Resource(o.kind.GVR()).Namespace(o.namespace).Delete(ctx, o.Name,
				metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
			if err != nil {
				return err
			}
			took = append(took, milliseconds(time.Since(began)))
		}
		b.note(who, figure{"DELETE p50, ms", percentile(took, 50)}, figure{"p99", percentile(took, 99)})
		return nil
	}
	if err := asks("without a webhook"); err != nil {
		return err
	}
	probe, err := load.Populate(ctx, b.Config, load.Flat(1))
	if err != nil {
		return err
	}
	g, err := b.startPair(ctx, policy("scale", "DeletionPolicy", `propagation: {default: Background}`+
		`, protection: {maxDependents: 1000000}, match: {resources: [{apiGroups: ["*"], resources: ["*"]}]}`), "companion")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.stop(ctx)) }()
	if err := b.awaitAsked(ctx, g, probe, nil); err != nil {
		return err
	}
	return asks("dependents are counted")
}

// startsAtScale measures starts, and what Weir holds then.
func (b *bench) startsAtScale(ctx context.Context, s system, empty weight, objects int) error {
	for range b.inTime(startRounds) {
		began := time.Now()
		if err := b.listKinds(ctx); err != nil {
			return err
		}
		lists := time.Since(began).Seconds()
		w, err := b.weigh(ctx, s)
		if err != nil {
			return err
		}
		b.note(fmt.Sprintf("%s, %d objects", s.name, objects), append(w.figures(empty, objects),
			figure{"ready after, s", w.ready.Seconds()}, figure{"of plain lists", w.ready.Seconds() / lists})...)
	}
	return nil
}

// failsOver kills the leader when half of a cascade is done, and measures the longest time from then
// on without a delete.
func (b *bench) failsOver(ctx context.Context, layout load.Layout) error {
	p, err := load.Populate(ctx, b.Config, layout)
	if err != nil {
		return err
	}
	s := b.weirAs("weir", b.weir, "--leader-elect=true", "--leader-elect-lease-duration", scaleLease.String())
	leader, _, err := b.startAwake(ctx, s)
	if err != nil {
		return err
	}
	defer leader.Kill()
	standby, err := s.start(ctx)
	if err != nil {
		return err
	}
	defer b.end(standby)
	gone, last, longest := 0, time.Time{}, time.Duration(0)
	var killed sync.WaitGroup
	p.Ended = func(at time.Time) {
		if gone++; gone == len(p.Dependents)/2 {
			killed.Go(leader.Kill)
		}
		if gone > len(p.Dependents)/2 {
			longest = max(longest, at.Sub(last))
		}
		last = at
	}
	_, err = b.cascade(ctx, b.admin, p, background)
	killed.Wait()
	if err != nil {
		return err
	}
	b.note("fail-over, Lease of "+scaleLease.String(), figure{"no delete for, s", longest.Seconds()})
	return nil
}
