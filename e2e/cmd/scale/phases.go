package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/weir-dev/weir/e2e/load"
	"github.com/weir-dev/weir/e2e/scale"
)

// populateShare is how many hundredths of all time the making of objects may take: with fewer of
// them all else can still be measured.
const populateShare = 48

// The Go runtime collects every two minutes in an idle process: emptyFor is not long enough for
// that, and what an empty weir holds is little.
const (
	emptyFor   = 20 * time.Second
	startedFor = 15 * time.Second // from the first work until a process is looked at that has nothing to do
)

func (b *bench) weighEmpty(ctx context.Context) error {
	running, _, err := load.StartAwake(ctx, b.plane.Config, b.weirOf())
	if err != nil {
		return err
	}
	b.sampler.Follow(0, running)
	defer b.sampler.Follow(0, nil)
	f, err := load.Settle(ctx, running, emptyFor)
	if err == nil {
		b.report.empty = &f
	}
	return errors.Join(err, running.Stop())
}

func (b *bench) populate(ctx context.Context) (err error) {
	began := time.Now()
	if b.all, err = scale.Populate(ctx, b.plane.Config, namespaces, b.objects/namespaces, began.Add(b.limit*populateShare/100), &b.sampler.Made); err != nil {
		return err
	}
	b.untaken, b.live = b.all, scale.Count(b.all)
	b.report.populated = &timed{b.live, time.Since(began)}
	if err := load.Pause(ctx, load.Digest); err != nil {
		return err
	}
	if x, ok := b.sampler.Last(); ok {
		b.report.plane = x.Memory
	}
	return nil
}

// policy is about all kinds, and has the dependents counted of what is deleted.
const policy = `apiVersion: weir.dev/v1beta1
kind: DeletionPolicy
metadata: {name: scale}
spec: {propagation: {default: Background}, protection: {maxDependents: 1000000}, match: {resources: [{apiGroups: ["*"], resources: ["*"]}]}}
`

// ask measures what a DELETE takes without the webhook and with it, for a trial, so that all
// objects stay.
func (b *bench) ask(ctx context.Context) (err error) {
	x := asked{live: b.live}
	if x.without, err = scale.Ask(ctx, b.user, b.all, b.asks); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(b.plane.Dir, "policies-")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "policy.yaml"), []byte(policy), 0o644)
	}
	if err != nil {
		return fmt.Errorf("write a policy: %w", err)
	}
	g, err := load.StartWeirGuard(ctx, b.plane, b.weir, b.kubeconfig, dir)
	if g != nil {
		defer func() { err = errors.Join(err, g.Stop(ctx)) }()
	}
	if err != nil {
		return err
	}
	ns := b.all[0]
	if err := g.AwaitAsked(ctx, b.user, &load.Population{Namespace: ns.Name, Owner: ns.Objects[0]}, nil); err != nil {
		return err
	}
	before, err := g.Asked(ctx)
	if err != nil {
		return err
	}
	if x.with, err = scale.Ask(ctx, b.user, b.all, b.asks); err != nil {
		return err
	}
	after, err := g.Asked(ctx)
	x.calls = (after - before) / float64(b.asks)
	b.report.asked = &x
	return err
}

// Starts and plain lists take turns, for rounds differ by the garbage that the API server happens
// to collect in them: startRounds times, unless that takes more than startShare hundredths of all
// time.
const startRounds, startShare = 5, 4

// start measures starts, and has the last process lead.
func (b *bench) start(ctx context.Context) error {
	b.report.started = &started{objects: b.live}
	for began := time.Now(); ; {
		running, err := b.startOnce(ctx)
		if err != nil {
			return err
		}
		if len(b.report.started.rounds) == startRounds || time.Since(began) > b.limit*startShare/100 {
			b.leading, b.running = running, append(b.running, running)
			b.sampler.Follow(0, running)
			return nil
		}
		if err := running.Stop(); err != nil {
			return err
		}
	}
}

// startOnce measures plain lists, and a start after them.
func (b *bench) startOnce(ctx context.Context) (*load.Running, error) {
	began := time.Now()
	n, err := scale.ListAll(ctx, b.asWeir)
	if err != nil {
		return nil, err
	}
	r := startRound{lists: time.Since(began)}
	running, awake, err := load.StartAwake(ctx, b.plane.Config, b.weirOf())
	if err != nil {
		return nil, err
	}
	r.ready, r.awake = running.Ready, awake
	if r.peak, err = load.Highest(running.Child); err != nil {
		return running, errors.Join(err, running.Stop())
	}
	b.say("start: %d objects listed in %.1f s; ready after %.1f s, first work after %.1f s, at the most %.0f MB", n, r.lists.Seconds(), r.ready.Seconds(), awake.Seconds(), mb(r.peak))
	b.report.started.rounds = append(b.report.started.rounds, r)
	return running, nil
}

// update changes objects that nothing else is done to. What weir holds meanwhile goes up and down
// with its garbage.
func (b *bench) update(ctx context.Context) error {
	err := b.touch(ctx)
	b.report.steady = steadyOf(b.sampler.Of(updates))
	return err
}

// steadyOf is the least and the most that weir held in some samples; nil if it was in none of them.
func steadyOf(samples []scale.Sample) *steady {
	var s steady
	for _, x := range samples {
		switch rss := x.Memory["weir"]; {
		case rss == 0 || x.Heap == 0: // not read
		case s.least.RSS == 0:
			s = steady{load.Footprint{RSS: rss, Heap: x.Heap}, rss}
		default:
			s.least.RSS, s.least.Heap, s.most = min(s.least.RSS, rss), min(s.least.Heap, x.Heap), max(s.most, rss)
		}
	}
	if s.most == 0 {
		return nil
	}
	return &s
}

func (b *bench) touch(ctx context.Context) (err error) {
	// What is left of the start is not what it takes when nothing happens.
	if err := load.Pause(ctx, startedFor); err != nil {
		return err
	}
	n := int(b.updateFor.Seconds() * float64(b.updates))
	x := updated{perSecond: b.updates}
	x.each, err = load.Spent(ctx, b.leading, func() (int, error) {
		var err error
		x.n, x.took, err = scale.Touch(ctx, b.plane.Config, b.all[3*namespaces/10:], n, b.updates, 2*b.updateFor, &b.sampler.Changed)
		return x.n, err
	})
	if err != nil {
		return err
	}
	b.report.updated = &x
	b.say("updates: %.0f/s, %.1f µs each", x.rate(), x.each)
	return nil
}

func (b *bench) cascade(ctx context.Context) error {
	x := gone{live: b.live}
	var err error
	if x.Result, err = scale.Cascade(ctx, b.plane.Config, b.take(), func(time.Time) {}); err != nil {
		return err
	}
	b.live -= x.Dependents
	b.report.cascade = &x
	b.say("cascade: %d objects, %.0f/s", x.Dependents, x.Rate())
	return nil
}

// failOver kills the leader when half of a cascade is done.
func (b *bench) failOver(ctx context.Context) error {
	standby, err := b.weirOf().Start(ctx)
	if err != nil {
		return err
	}
	b.running = append(b.running, standby)
	b.sampler.Follow(1, standby)
	x := failedOver{ready: standby.Ready}
	taken := b.take()
	var ended []time.Time
	var killed sync.WaitGroup
	half := scale.Count(taken) / 2
	result, err := scale.Cascade(ctx, b.plane.Config, taken, func(at time.Time) {
		if ended = append(ended, at); len(ended) == half {
			x.killed = at
			killed.Go(b.leading.Kill)
		}
	})
	killed.Wait()
	b.leading = standby
	b.sampler.Follow(0, nil)
	if err != nil {
		return err
	}
	b.live -= result.Dependents
	x.objects, x.after, x.pause = result.Dependents, half, scale.LongestPause(ended, x.killed)
	b.report.failedOver = &x
	b.say("fail-over: %.1f s without a delete", x.pause.Seconds())
	return nil
}

// drain has the leader empty a namespace that is made while it runs.
func (b *bench) drain(ctx context.Context) error {
	made, err := scale.Populate(ctx, b.plane.Config, 1, scale.Count(b.all)/10, time.Now().Add(b.limit), &b.sampler.Made)
	if err != nil {
		return err
	}
	if err := load.Pause(ctx, load.Digest); err != nil {
		return err
	}
	x := gone{live: b.live + scale.Count(made)}
	batch := &load.Batch{Namespaces: []load.Object{made[0].Object}, Content: make([]load.Content, len(made[0].Objects))}
	if x.Result, err = load.Drain(ctx, b.plane.Config, b.plane.Metrics, batch); err != nil {
		return err
	}
	b.report.drained = &x
	b.say("namespace: %d objects, %.0f/s", x.Dependents, x.Rate())
	return nil
}

// floor comes last, since no collector runs meanwhile.
func (b *bench) floor(ctx context.Context) error {
	b.sampler.Follow(0, nil)
	b.sampler.Follow(1, nil)
	for _, r := range b.running {
		if err := r.Stop(); err != nil {
			return err
		}
	}
	if err := load.Pause(ctx, load.Digest); err != nil {
		return err
	}
	x := gone{live: b.live}
	var err error
	if x.Result, err = scale.Floor(ctx, b.asWeir, b.take(), func(time.Time) { b.sampler.Deleted.Add(1) }); err != nil {
		return err
	}
	b.report.floor = &x
	b.say("floor: %d objects, %.0f/s", x.Dependents, x.Rate())
	return nil
}
