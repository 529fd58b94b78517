package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/e2e/load"
)

const (
	scaleName = "at scale"
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

// apiServerEnv limits the memory of an API server with many objects: it keeps some 6 GB of a
// million, of which it would take twice as much before it collects its garbage.
func apiServerEnv(objects int) []string {
	if objects == 0 {
		return nil
	}
	return []string{"GOMEMLIMIT=13GiB"}
}

// measureScale measures Weir in a cluster of many objects of many kinds.
func (b *bench) measureScale(ctx context.Context, r *report) error {
	if b.limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, b.started.Add(b.limit))
		defer cancel()
	}
	weir := b.systems[0]
	empty, err := b.weigh(ctx, weir)
	if err != nil {
		return err
	}
	began, until := time.Now(), time.Now().Add(24*time.Hour)
	if b.limit > 0 {
		until = b.started.Add(b.limit * fillShare / 100)
	}
	middles, objects, err := load.Fill(ctx, b.plane.Config, b.objects, until)
	if err != nil {
		return err
	}
	r.note("the API server", figure{"objects", float64(objects)},
		figure{"made a second", float64(objects) / time.Since(began).Seconds()})
	if err := b.asksAtScale(ctx, r, middles); err != nil {
		return err
	}
	if err := b.startsAtScale(ctx, r, weir, empty.Footprint, objects); err != nil {
		return err
	}
	w, n := work{layout: load.Tree, policy: metav1.DeletePropagationBackground}, max(b.n, objects/20)
	if err := b.failsOver(ctx, r, w.layout(n)); err != nil {
		return err
	}
	floor := func(ctx context.Context) (load.Result, error) { return b.floor(ctx, w, n) }
	do := func(ctx context.Context, s load.System) (load.Result, error) { return b.cascade(ctx, w, s, n) }
	return b.betweenFloors(ctx, r, []load.System{weir}, true, floor, do)
}

// asksAtScale measures what a DELETE takes without the webhook and with it, for a trial, so that all
// objects stay.
func (b *bench) asksAtScale(ctx context.Context, r *report, objects []load.Content) (err error) {
	user, _, err := load.User(ctx, b.plane, "scale")
	if err != nil {
		return err
	}
	note := func(who string) error {
		a, err := load.AskDeletes(ctx, user, objects, scaleAsks)
		if err == nil {
			r.note(who, figure{"DELETE p50, ms", milliseconds(a.Delete(50))}, figure{"p99", milliseconds(a.Delete(99))})
		}
		return err
	}
	dir, err := os.MkdirTemp(b.plane.Dir, "policies-")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "policy.yaml"), []byte(countsAll), 0o644)
	}
	if err == nil {
		err = note("without a webhook")
	}
	if err != nil {
		return err
	}
	g, err := load.StartWeirGuard(ctx, b.plane, b.weir, b.kubeconfig, dir)
	if g != nil {
		defer func() { err = errors.Join(err, g.Stop(ctx)) }()
	}
	if err != nil {
		return err
	}
	probe, err := load.Populate(ctx, b.plane.Config, load.Flat(1))
	if err == nil {
		err = g.AwaitAsked(ctx, user, probe, nil)
	}
	if err != nil {
		return err
	}
	return note("dependents are counted")
}

// countsAll is about all kinds, and has the dependents counted of what is deleted.
const countsAll = `apiVersion: weir.dev/v1beta1
kind: DeletionPolicy
metadata: {name: scale}
spec:
  propagation: {default: Background}
  protection: {maxDependents: 1000000}
  match: {resources: [{apiGroups: ["*"], resources: ["*"]}]}
`

// startsAtScale measures starts, and what Weir holds then.
func (b *bench) startsAtScale(ctx context.Context, r *report, s load.System, empty load.Footprint, objects int) error {
	for range b.inTime(startRounds) {
		began := time.Now()
		if err := load.ListFilled(ctx, b.cfg); err != nil {
			return err
		}
		lists := time.Since(began).Seconds()
		w, err := b.weigh(ctx, s)
		if err != nil {
			return err
		}
		r.note(fmt.Sprintf("%s, %d objects", s.Name, objects), append(w.figures(empty, objects),
			figure{"ready after, s", w.ready.Seconds()}, figure{"of plain lists", w.ready.Seconds() / lists})...)
	}
	return nil
}

// failsOver kills the leader when half of a cascade is done, and measures the longest time from then
// on without a delete.
func (b *bench) failsOver(ctx context.Context, r *report, layout load.Layout) error {
	p, err := load.Populate(ctx, b.plane.Config, layout)
	if err != nil {
		return err
	}
	flags := []string{"--leader-elect=true", "--leader-elect-lease-duration", scaleLease.String()}
	s := load.Weir(b.plane, b.weir, b.kubeconfig, append(flags, b.weirFlags...)...)
	leader, _, err := load.StartAwake(ctx, b.plane.Config, s)
	if err != nil {
		return err
	}
	defer leader.Kill()
	standby, err := s.Start(ctx)
	if err != nil {
		return err
	}
	defer b.stop(standby)
	gone, last, pause := 0, time.Time{}, time.Duration(0)
	var killed sync.WaitGroup
	p.Ended = func(at time.Time) {
		if gone++; gone == len(p.Dependents)/2 {
			killed.Go(leader.Kill)
		}
		if gone > len(p.Dependents)/2 {
			pause = max(pause, at.Sub(last))
		}
		last = at
	}
	_, err = load.Cascade(ctx, b.plane.Config, b.plane.Metrics, p, metav1.DeletePropagationBackground)
	killed.Wait()
	if err != nil {
		return err
	}
	r.note("fail-over, Lease of "+scaleLease.String(), figure{"no delete for, s", pause.Seconds()})
	return nil
}
