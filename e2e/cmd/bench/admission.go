package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/weir-dev/weir/e2e/load"
)

// An admitting is plain requests that go through a webhook.
type admitting struct {
	name string
	// kind and policy are weir's only policy, about ConfigMaps with the labels.
	kind, policy string
	selected     map[string]string
	// spared: the API server is not to ask, and so there is nothing to compare with.
	spared bool
	// patch is what weir's webhook answers with, of the shortest kind: one that answers with
	// nothing else is measured, too. Empty: weir changes nothing.
	patch string
	act   func(ctx context.Context, cfg *rest.Config, p *load.Population, n int) error
}

var admittings = []admitting{
	{"DELETE, a policy that changes no propagation", deletions, `propagation: {default: Background}`, nil, false, "", deleteAll},
	{"DELETE, dependents are counted", deletions, `propagation: {default: Background}, protection: {maxDependents: 1000000}`, nil, false, "", deleteAll},
	{"DELETE by a collector, which a policy judges", deletions, `protection: {maxDependents: 1000000, inCascades: Refuse}`, nil, false, "", collectAll},
	{"DELETE by a collector, a policy protects others", deletions, `protection: {confirmation: Required}`, map[string]string{"precious": "yes"}, true, "", collectAll},
	{"UPDATE of data, owner references are judged", references, `blockOwnerDeletion: RequirePermission, changes: RequirePermission`, nil, true, "", touch},
	{"UPDATE of data, a policy that adds the finalizer to others", deletions, `propagation: {default: Foreground}`, map[string]string{"stamped": "yes"}, true, "", touch},
	{"DELETE, the API server judges by a policy that says nothing", deletions, "", nil, true, "", deleteAll},
	{"DELETE, the API server judges by itself", deletions, `propagation: {allowed: [Background]}`, nil, true, "", deleteAll},
	{"UPDATE of data, the API server judges 16 policies by itself", deletions, `propagation: {allowed: [Background]}`, nil, true, "", touch},
	{"UPDATE of data, the API server judges 16 policies about another kind", deletions, `propagation: {allowed: [Background]}`, nil, true, "", touch},
	{"CREATE, the finalizer is added", deletions, `propagation: {default: Foreground}`, enforced, false, load.AddsFinalizer, func(ctx context.Context, cfg *rest.Config, p *load.Population, n int) error {
		return load.More(ctx, cfg, p, n, enforced)
	}},
}

const (
	deletions  = "DeletionPolicy"
	references = "OwnerReferencePolicy"
)

// deleteAll is what the floor of a background cascade is, here through a webhook.
func deleteAll(ctx context.Context, cfg *rest.Config, p *load.Population, _ int) error {
	return load.Floor(ctx, cfg, p, metav1.DeletePropagationBackground)
}

// collectAll is deleteAll by the built-in garbage collector.
func collectAll(ctx context.Context, cfg *rest.Config, p *load.Population, n int) error {
	as := rest.CopyConfig(cfg)
	as.Impersonate.UserName = "system:serviceaccount:kube-system:generic-garbage-collector"
	return deleteAll(ctx, as, p, n)
}

func touch(ctx context.Context, cfg *rest.Config, p *load.Population, _ int) error {
	return load.Touch(ctx, cfg, p)
}

// admitted is one round: without a webhook, before and after; with one that allows everything
// unseen; with one that answers with the same patch always, where weir's patches; and with weir's.
type admitted struct {
	before, empty, constant, weir, after guarded
}

// guarded is what was measured of one webhook.
type guarded struct {
	rate  float64 // objects a second
	asked float64 // reviews for an object
	cpu   float64 // what the webhook's process took for an object, in microseconds
}

func (a admitted) share() float64 { return a.weir.rate / a.empty.rate }

// ofConstant is what weir's rate is of that of a webhook that answers with a patch which is always
// the same.
func (a admitted) ofConstant() float64 { return a.weir.rate / a.constant.rate }

// ofWithout is what is left of the rate without a webhook.
func (a admitted) ofWithout() float64 { return 2 * a.weir.rate / (a.before.rate + a.after.rate) }

// and is the mean of two measurements, of which the first may be none.
func (g guarded) and(h guarded) guarded {
	if g == (guarded{}) {
		return h
	}
	return guarded{rate: (g.rate + h.rate) / 2, asked: (g.asked + h.asked) / 2, cpu: (g.cpu + h.cpu) / 2}
}

// compareAdmitting measures weir's webhook, the empty one, the empty one, and weir's, or
// the other way around: etcd and the API server get slower with every object that there
// was, which would favour whoever is always first.
func (b *bench) compareAdmitting(ctx context.Context, a admitting, r *report) error {
	user, _, err := load.User(ctx, b.plane, "bench")
	if err != nil {
		return err
	}
	var rules load.GuardRules
	weir := func() (*load.Guard, error) {
		g, err := b.startWeirGuard(ctx, a)
		if err == nil {
			rules = g.Rules
		}
		return g, err
	}
	empty := func() (*load.Guard, error) { return b.startEmptyGuard(ctx, rules, "") }
	constant := func() (*load.Guard, error) { return b.startEmptyGuard(ctx, rules, a.patch) }
	for round := range b.inTime(b.rounds) {
		var x admitted
		type step struct {
			start func() (*load.Guard, error)
			to    *guarded
		}
		before, after, w, e := step{nil, &x.before}, step{nil, &x.after}, step{weir, &x.weir}, step{empty, &x.empty}
		steps := []step{before, w, e, e, w, after}
		if a.spared {
			steps = []step{before, w, w, after}
		} else if round%2 == 1 {
			steps = []step{before, e, w, w, e, after}
		}
		if c := (step{constant, &x.constant}); a.patch != "" { // between the two of weir's, or around them: as far from each
			steps = slices.Insert(slices.Insert(steps, 4, c), 2, c)
		}
		for _, s := range steps {
			m, err := b.guarded(ctx, a, user, s.start)
			if err != nil {
				return err
			}
			*s.to = s.to.and(m)
		}
		r.admitted[a.name] = append(r.admitted[a.name], x)
		b.say("%s, round %d: without a webhook %.0f/s, empty %.0f/s (%.0f µs each), the same patch always %.0f/s (%.0f µs), weir %.0f/s (%.0f µs, %.2f calls each), without %.0f/s",
			a.name, round+1, x.before.rate, x.empty.rate, x.empty.cpu, x.constant.rate, x.constant.cpu, x.weir.rate, x.weir.cpu, x.weir.asked, x.after.rate)
	}
	return nil
}

// guarded measures the work with a webhook, or without one, on objects that were made
// before it was there.
func (b *bench) guarded(ctx context.Context, a admitting, user *rest.Config, start func() (*load.Guard, error)) (guarded, error) {
	p, err := load.Populate(ctx, b.plane.Config, load.Flat(b.n))
	if err != nil {
		return guarded{}, err
	}
	var measured guarded
	_, judged := judgedAlone[a.name]
	switch {
	case start == nil:
		measured, err = b.served(ctx, a, user, p)
	case judged:
		measured, err = b.alone(ctx, a, user, p)
	default:
		measured, err = b.behind(ctx, a, user, p, start)
	}
	return measured, errors.Join(err, load.Clean(ctx, b.plane.Config, p))
}

// behind measures the work behind a webhook.
func (b *bench) behind(ctx context.Context, a admitting, user *rest.Config, p *load.Population, start func() (*load.Guard, error)) (m guarded, err error) {
	g, err := start()
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, g.Stop(ctx)) }()
	if err := g.AwaitAsked(ctx, user, p, a.selected); err != nil {
		return m, err
	}
	spent := func() (asked, cpu float64, err error) {
		if asked, err = g.Asked(ctx); err != nil {
			return asked, cpu, err
		}
		cpu, err = g.CPU()
		return asked, cpu, err
	}
	asked, cpu, err := spent()
	if err != nil {
		return m, err
	}
	if m.rate, err = b.rateOf(ctx, a, user, p); err != nil {
		return m, err
	}
	askedThen, cpuThen, err := spent()
	m.asked, m.cpu = (askedThen-asked)/float64(b.n), (cpuThen-cpu)/float64(b.n)*1e6
	return m, err
}

// rateOf does the work.
func (b *bench) rateOf(ctx context.Context, a admitting, user *rest.Config, p *load.Population) (float64, error) {
	if err := load.Pause(ctx, digest); err != nil {
		return 0, err
	}
	began := time.Now()
	err := a.act(ctx, user, p, b.n)
	return float64(b.n) / time.Since(began).Seconds(), err
}

func (b *bench) startWeirGuard(ctx context.Context, a admitting) (*load.Guard, error) {
	dir, err := os.MkdirTemp(b.plane.Dir, "policies-")
	if err != nil {
		return nil, err
	}
	selector := ""
	for k, v := range a.selected {
		selector += fmt.Sprintf(", objectSelector: {matchLabels: {%q: %q}}", k, v)
	}
	text := fmt.Sprintf("apiVersion: weir.dev/v1beta1\nkind: %s\nmetadata: {name: bench}\n"+
		"spec: {%s, match: {resources: [{apiGroups: [\"\"], resources: [configmaps]}]%s}}\n", a.kind, a.policy, selector)
	if err := os.WriteFile(filepath.Join(dir, "policy.yaml"), []byte(text), 0o644); err != nil {
		return nil, err
	}
	return load.StartWeirGuard(ctx, b.plane, b.weir, b.kubeconfig, dir)
}

// startEmptyGuard runs this program as the empty webhook.
func (b *bench) startEmptyGuard(ctx context.Context, rules load.GuardRules, patch string) (*load.Guard, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	return load.StartEmptyGuard(ctx, b.plane, self, rules, patch)
}

// writeAdmitted tells what a webhook costs.
func (r *report) writeAdmitted(s *strings.Builder) {
	head := "\n| requests | without a webhook, objects/s (least–most) | empty webhook | its CPU each, µs | weir | CPU each, µs | weir / empty, by round | weir / the same patch always, by round | calls each |\n|---|---|---|---|---|---|---|---|---|\n"
	for _, a := range admittings {
		rounds := r.admitted[a.name]
		if len(rounds) == 0 {
			continue
		}
		of := func(value func(admitted) float64) []float64 {
			var v []float64
			for _, x := range rounds {
				v = append(v, value(x))
			}
			return v
		}
		floors := append(of(func(x admitted) float64 { return x.before.rate }), of(func(x admitted) float64 { return x.after.rate })...)
		empty, emptyCPU, share := "not asked", "", byRound(of(admitted.ofWithout))+" of without"
		if !a.spared {
			empty = fmt.Sprintf("%.0f", median(of(func(x admitted) float64 { return x.empty.rate })))
			emptyCPU = fmt.Sprintf("%.0f", median(of(func(x admitted) float64 { return x.empty.cpu })))
			share = byRound(of(admitted.share))
		}
		if _, judged := judgedAlone[a.name]; judged {
			share += ", CPU of the API server " + byRound(of(admitted.cpuOfWithout))
		}
		constant := ""
		if a.patch != "" {
			constant = byRound(of(admitted.ofConstant))
		}
		fmt.Fprintf(s, "%s| %s | %s | %s | %s | %.0f | %.0f | %s | %s | %.2f |\n", head, a.name, spread(floors), empty, emptyCPU,
			median(of(func(x admitted) float64 { return x.weir.rate })), median(of(func(x admitted) float64 { return x.weir.cpu })),
			share, constant, median(of(func(x admitted) float64 { return x.weir.asked })))
		head = ""
	}
}

// byRound is the median, and what it is of.
func byRound(v []float64) string {
	var each []string
	for _, x := range v {
		each = append(each, fmt.Sprintf("%.2f", x))
	}
	return fmt.Sprintf("%.2f (%s)", median(v), strings.Join(each, ", "))
}
