package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/rest"

	"github.com/weir-dev/weir/e2e/load"
	"github.com/weir-dev/weir/e2e/plane"
)

// A judging is plain requests that policies judge.
type judging struct {
	name string
	// spec is that of a DeletionPolicy about all ConfigMaps; kind: of another kind.
	kind, spec string
	// labels are those of the ConfigMaps that the policy is about, if it is not about all.
	labels map[string]string
	act    func(ctx context.Context, who clients, p *load.Population) error
}

const aboutConfigMaps = `{apiGroups: [""], resources: [configmaps]}`

var enforced = map[string]string{"enforced": "yes"}

var judgings = []judging{
	{name: "DELETE, a policy that changes no propagation", spec: `propagation: {default: Background}`, act: deleteAll},
	{name: "DELETE, dependents are counted", act: deleteAll,
		spec: `propagation: {default: Background}, protection: {maxDependents: 1000000}`},
	{name: "DELETE by a collector, which a policy judges", act: collectAll,
		spec: `protection: {maxDependents: 1000000, inCascades: Refuse}`},
	{name: "DELETE by a collector, a policy protects others", act: collectAll,
		spec: `protection: {confirmation: Required}`, labels: map[string]string{"precious": "yes"}},
	{name: "UPDATE of data, owner references are judged", act: touch,
		kind: "OwnerReferencePolicy", spec: `blockOwnerDeletion: RequirePermission, changes: RequirePermission`},
	{name: "UPDATE of data, a policy that adds the finalizer to others", act: touch,
		spec: `propagation: {default: Foreground}`, labels: map[string]string{"stamped": "yes"}},
	{name: "CREATE, the finalizer is added", spec: `propagation: {default: Foreground}`, labels: enforced, act: makeMore},
}

// deleteAll is what the floor of a background cascade is.
func deleteAll(ctx context.Context, who clients, p *load.Population) error {
	return floor(ctx, who, p, background)
}

// garbageCollector is who the built-in collector is.
const garbageCollector = "system:serviceaccount:kube-system:generic-garbage-collector"

// collectAll is deleteAll by the built-in garbage collector.
func collectAll(ctx context.Context, who clients, p *load.Population) error {
	cfg := rest.CopyConfig(who.Config)
	cfg.Impersonate.UserName = garbageCollector
	collector, err := as(cfg, "", nil)
	if err != nil {
		return err
	}
	return deleteAll(ctx, collector, p)
}

// makeMore makes as many ConfigMaps more as there are dependents.
func makeMore(ctx context.Context, who clients, p *load.Population) error {
	return load.Each(ctx, len(p.Dependents), func(ctx context.Context, i int) error {
		_, err := load.Create(ctx, who.dynamic, load.ConfigMap, p.Namespace, fmt.Sprintf("more-%d", i), enforced)
		return err
	})
}

// judged is what was measured of one guard.
type judged struct {
	rate  float64 // objects a second
	asked float64 // reviews for an object
	cpu   float64 // of the guard's process for an object, in microseconds
}

// mean is that of two measurements, of which the first may be none.
func (g judged) mean(h judged) judged {
	if g == (judged{}) {
		return h
	}
	return judged{rate: (g.rate + h.rate) / 2, asked: (g.asked + h.asked) / 2, cpu: (g.cpu + h.cpu) / 2}
}

// compareJudging measures without a guard, twice with weir's webhook, and without: etcd and the API
// server get slower with every object that there was, which would favour whoever is always first.
func (b *bench) compareJudging(ctx context.Context, j judging) error {
	for range b.inTime(b.rounds) {
		var none, weir judged
		for i, to := range []*judged{&none, &weir, &weir, &none} {
			m, err := b.judgedBy(ctx, j, i == 1 || i == 2)
			if err != nil {
				return err
			}
			*to = to.mean(m)
		}
		b.note("nobody", figure{"objects/s", none.rate})
		b.note("weir", figure{"objects/s", weir.rate}, figure{"of nobody", weir.rate / none.rate},
			figure{"CPU each, µs", weir.cpu}, figure{"calls each", weir.asked})
	}
	return nil
}

// judgedBy measures the work with weir's webhook, or without, on objects that were made before it
// was there.
func (b *bench) judgedBy(ctx context.Context, j judging, guarded bool) (m judged, err error) {
	p, err := load.Populate(ctx, b.Config, load.Flat(b.n))
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, b.clean(ctx, p)) }() // once no one judges any more
	g := b.noGuard()
	if guarded {
		g, err = b.startWeir(ctx, j, p)
	}
	if g != nil {
		defer func() { err = errors.Join(err, g.stop(ctx)) }()
	}
	if err == nil {
		err = pause(ctx, digest)
	}
	if err != nil {
		return m, err
	}
	spent := func() (asked, cpu float64) {
		asked, askedErr := g.asked(ctx)
		cpu, cpuErr := cpuOf(g.Child)
		err = errors.Join(err, askedErr, cpuErr)
		return asked, cpu
	}
	n := float64(b.n)
	asked, cpu := spent()
	began := time.Now()
	if err == nil {
		err = j.act(ctx, b.user, p)
	}
	m.rate = n / time.Since(began).Seconds()
	askedThen, cpuThen := spent()
	m.asked, m.cpu = (askedThen-asked)/n, (cpuThen-cpu)/n*1e6
	return m, err
}

// noGuard is the API server, which judges nothing.
func (b *bench) noGuard() *guard {
	return &guard{Child: b.Child(plane.APIServer), stop: func(context.Context) error { return nil },
		asked: func(context.Context) (float64, error) { return 0, nil }}
}

// startWeir runs weir's webhook. Its controller runs only until it has told the API server: what is
// measured is what a review costs.
func (b *bench) startWeir(ctx context.Context, j judging, p *load.Population) (*guard, error) {
	kind, selector := j.kind, ""
	if kind == "" {
		kind = "DeletionPolicy"
	}
	for k, v := range j.labels {
		selector = fmt.Sprintf(`, objectSelector: {matchLabels: {%s: "%s"}}`, k, v)
	}
	text := policy("bench", kind, fmt.Sprintf("%s, match: {resources: [%s]%s}", j.spec, aboutConfigMaps, selector))
	g, err := b.startPair(ctx, text, "companion")
	if err != nil {
		return nil, err
	}
	err = g.controller.Stop(plane.DefaultGrace)
	if err == nil {
		err = b.awaitAsked(ctx, g, p, j.labels)
	}
	return g, err
}
