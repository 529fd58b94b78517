package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/weir-dev/weir/e2e/load"
)

// An admitting is plain requests that go through a webhook.
type admitting struct {
	name string
	// policy is what weir's only policy asks for, about ConfigMaps that are selected.
	policy, selector string
	// spared: the API server is not to ask, and so there is nothing to compare with.
	spared bool
	act    func(context.Context, *rest.Config, *load.Population) error
}

var admittings = []admitting{
	{"DELETE, a policy that shapes nothing", `propagation: {default: Background}`, "", false, deleteAll},
	{"DELETE, dependents are counted", `propagation: {default: Background}, protection: {maxDependents: 1000000}`, "", false, deleteAll},
	// It stamps others of the kind: these would stay, without a controller.
	{"UPDATE of data, a policy that stamps", `propagation: {default: Foreground}`, `, objectSelector: {matchLabels: {stamped: "yes"}}`, true, load.Touch},
}

// deleteAll is what the floor of a background cascade is, here through a webhook.
func deleteAll(ctx context.Context, cfg *rest.Config, p *load.Population) error {
	return load.Floor(ctx, cfg, p, metav1.DeletePropagationBackground)
}

// admitted is one round: how many objects a second without a webhook, before and
// after, with one that allows everything unseen, and with weir's.
type admitted struct {
	before, empty, weir, after float64
	asked                      float64 // of weir, for an object
}

func (a admitted) share() float64 { return a.weir / a.empty }

// compareAdmitting takes both webhooks in turns; which comes first changes, so that a
// machine that gets slower or faster favours neither.
func (b *bench) compareAdmitting(ctx context.Context, a admitting, r *report) error {
	user, _, err := load.User(ctx, b.plane, "bench")
	if err != nil {
		return err
	}
	var rules []admissionregistrationv1.ValidatingWebhook
	weir := func(x *admitted) error {
		return b.guarded(ctx, a, user, func() (*load.Guard, error) {
			g, err := b.startWeirGuard(ctx, a)
			if err == nil {
				rules = g.Rules
			}
			return g, err
		}, &x.weir, &x.asked)
	}
	empty := func(x *admitted) error {
		var asked float64
		return b.guarded(ctx, a, user, func() (*load.Guard, error) { return load.StartEmptyGuard(ctx, b.plane.Config, rules) }, &x.empty, &asked)
	}
	none := func(rate *float64) error { var asked float64; return b.guarded(ctx, a, user, nil, rate, &asked) }
	for round := range b.roundsOf(false) {
		var x admitted
		steps := []func(*admitted) error{weir, empty}
		if a.spared {
			steps = steps[:1]
		} else if round%2 == 1 {
			steps = []func(*admitted) error{empty, weir}
		}
		if err := none(&x.before); err != nil {
			return err
		}
		for _, step := range steps {
			if err := step(&x); err != nil {
				return err
			}
		}
		if err := none(&x.after); err != nil {
			return err
		}
		r.admitted[a.name] = append(r.admitted[a.name], x)
		b.say("%s, round %d: without a webhook %.0f/s, empty %.0f/s, weir %.0f/s (%.2f calls each), without %.0f/s",
			a.name, round+1, x.before, x.empty, x.weir, x.asked, x.after)
	}
	return nil
}

// guarded measures the work with a webhook, or without one, on objects that were made
// before it was there.
func (b *bench) guarded(ctx context.Context, a admitting, user *rest.Config, start func() (*load.Guard, error), rate, asked *float64) error {
	p, err := load.Populate(ctx, b.plane.Config, load.Flat(b.n))
	if err != nil {
		return err
	}
	stop := func() error { return nil }
	count := func(context.Context) (float64, error) { return 0, nil }
	if start != nil {
		g, err := start()
		if err != nil {
			return err
		}
		stop, count = func() error { return g.Stop(ctx) }, g.Asked
		if err := g.AwaitAsked(ctx, user, p); err != nil {
			return errors.Join(err, stop())
		}
	}
	measured := func() error {
		if err := load.Pause(ctx, digest); err != nil {
			return err
		}
		before, err := count(ctx)
		if err != nil {
			return err
		}
		began := time.Now()
		if err := a.act(ctx, user, p); err != nil {
			return err
		}
		*rate = float64(b.n) / time.Since(began).Seconds()
		after, err := count(ctx)
		*asked = (after - before) / float64(b.n)
		return err
	}()
	return errors.Join(measured, stop(), load.Clean(ctx, b.plane.Config, p))
}

func (b *bench) startWeirGuard(ctx context.Context, a admitting) (*load.Guard, error) {
	dir, err := os.MkdirTemp(b.plane.Dir, "policies-")
	if err != nil {
		return nil, err
	}
	text := fmt.Sprintf("apiVersion: weir.dev/v1alpha1\nkind: DeletionPolicy\nmetadata: {name: bench}\n"+
		"spec: {%s, match: {resources: [{apiGroups: [\"\"], resources: [configmaps]}]%s}}\n", a.policy, a.selector)
	if err := os.WriteFile(filepath.Join(dir, "policy.yaml"), []byte(text), 0o644); err != nil {
		return nil, err
	}
	return load.StartWeirGuard(ctx, b.plane, b.weir, b.kubeconfig, dir)
}

// writeAdmitted tells what a webhook costs.
func (r *report) writeAdmitted(s *strings.Builder) {
	head := "\n| requests | without a webhook, objects/s (least–most) | empty webhook | weir | weir / empty | calls each |\n|---|---|---|---|---|---|\n"
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
		floors := append(of(func(x admitted) float64 { return x.before }), of(func(x admitted) float64 { return x.after })...)
		empty, share := "not asked", ""
		if !a.spared {
			empty = fmt.Sprintf("%.0f", median(of(func(x admitted) float64 { return x.empty })))
			share = fmt.Sprintf("%.2f", median(of(admitted.share)))
		}
		fmt.Fprintf(s, "%s| %s | %s | %s | %.0f | %s | %.2f |\n", head, a.name, spread(floors), empty,
			median(of(func(x admitted) float64 { return x.weir })), share, median(of(func(x admitted) float64 { return x.asked })))
		head = ""
	}
}
