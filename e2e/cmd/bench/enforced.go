package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/weir-dev/weir/e2e/load"
)

// An enforcing is deletions that go as a policy says, by its default.
type enforcing struct {
	name string
	// propagation is the default of the policy, which is about what carries the label enforced.
	propagation string
	shape       func(int) load.Shape
	act         func(context.Context, *bench, *rest.Config, *load.Population) (load.Result, error)
	// plainly is what the rate is compared with: the floor, if it is nil, or the same without a policy.
	plainly func(context.Context, *bench, *load.Population) (load.Result, error)
}

var enforced = map[string]string{"enforced": "yes"}

var enforcings = []enforcing{
	{"enforced Foreground, no dependents", "Foreground", looseEnforced, deleteEach, nil},
	{"enforced Orphan, no dependents", "Orphan", looseEnforced, deleteEach, nil},
	{"enforced Foreground, in a background cascade", "Foreground", func(n int) load.Shape {
		s := load.Flat(n)
		s.Labels = enforced
		return s
	}, deleteOwner, nil},
	{"enforced Foreground, of the owner of plain dependents", "Foreground", func(n int) load.Shape {
		s := load.Flat(n)
		s.OwnerLabels = enforced
		return s
	}, deleteOwner, func(ctx context.Context, b *bench, p *load.Population) (load.Result, error) {
		return load.Cascade(ctx, b.cfg, b.plane.Metrics, p, metav1.DeletePropagationForeground)
	}},
}

func looseEnforced(n int) load.Shape {
	s := load.Loose(n)
	s.Labels = enforced
	return s
}

func deleteEach(ctx context.Context, b *bench, user *rest.Config, p *load.Population) (load.Result, error) {
	return load.Deletes(ctx, b.plane.Config, user, b.plane.Metrics, p)
}

func deleteOwner(ctx context.Context, b *bench, user *rest.Config, p *load.Population) (load.Result, error) {
	return load.Cascade(ctx, user, b.plane.Metrics, p, metav1.DeletePropagationBackground)
}

// modes are in which weir runs, beside the built-in collector without limits or in its place.
var modes = []string{"replace", "companion"}

// enforcedSample is one round of one mode.
type enforcedSample struct {
	mode              string
	plain, with       load.Result
	made, madePlainly float64 // objects a second
}

func (b *bench) compareEnforcing(ctx context.Context, e enforcing, r *report) error {
	user, _, err := load.User(ctx, b.plane, "bench")
	if err != nil {
		return err
	}
	for round := range b.roundsOf(false) {
		for _, mode := range modes {
			x, err := b.enforcing(ctx, e, mode, user)
			if err != nil {
				return fmt.Errorf("%s: %w", mode, err)
			}
			r.enforced[e.name] = append(r.enforced[e.name], x)
			b.say("%s, %s, round %d: plainly %.0f/s, weir %.0f/s: %.2f; %.2f requests each %v, the first after %s; made %.0f/s, plainly %.0f/s",
				e.name, mode, round+1, x.plain.Rate(), x.with.Rate(), x.with.Rate()/x.plain.Rate(), x.with.PerObject(), x.with.Requests,
				x.with.First.Round(time.Millisecond), x.made, x.madePlainly)
		}
	}
	return nil
}

// enforcing measures one round: plainly first, and then under the policy.
func (b *bench) enforcing(ctx context.Context, e enforcing, mode string, user *rest.Config) (x enforcedSample, err error) {
	x.mode = mode
	dir, err := b.enforcedPolicy(e.propagation)
	if err != nil {
		return x, err
	}
	plain := func(ctx context.Context, p *load.Population) (load.Result, error) {
		if e.plainly != nil {
			return e.plainly(ctx, b, p)
		}
		return load.Measure(ctx, b.plane.Config, p, metav1.DeletePropagationBackground, func(ctx context.Context) error {
			return load.Floor(ctx, user, p, metav1.DeletePropagationBackground)
		})
	}
	if e.plainly == nil { // with nobody in the way
		if x.plain, x.madePlainly, err = b.made(ctx, unlabelled(e.shape(b.n)), plain); err != nil {
			return x, err
		}
	}
	if mode == "companion" {
		collector, _, startErr := load.StartAwake(ctx, b.plane.Config, b.lifted)
		if startErr != nil {
			return x, startErr
		}
		defer func() { err = errors.Join(err, collector.Stop()) }()
	}
	g, err := load.StartWeirPair(ctx, b.plane, b.weir, b.kubeconfig, dir, mode)
	if err != nil {
		return x, err
	}
	defer func() { err = errors.Join(err, g.Stop(ctx)) }()
	if err := load.AwaitStamping(ctx, user, enforced); err != nil {
		return x, err
	}
	if e.plainly != nil { // by the same collector
		if x.plain, x.madePlainly, err = b.made(ctx, unlabelled(e.shape(b.n)), plain); err != nil {
			return x, err
		}
	}
	x.with, x.made, err = b.made(ctx, e.shape(b.n), func(ctx context.Context, p *load.Population) (load.Result, error) { return e.act(ctx, b, user, p) })
	return x, err
}

// enforcedPolicy writes a policy about what carries the label, and returns where.
func (b *bench) enforcedPolicy(propagation string) (dir string, err error) {
	if dir, err = os.MkdirTemp(b.plane.Dir, "policies-"); err != nil {
		return "", err
	}
	text := fmt.Sprintf("apiVersion: weir.dev/v1alpha1\nkind: DeletionPolicy\nmetadata: {name: bench}\n"+
		"spec: {propagation: {default: %s}, match: {resources: [{apiGroups: [\"\"], resources: [configmaps]}], objectSelector: {matchLabels: {enforced: \"yes\"}}}}\n", propagation)
	return dir, os.WriteFile(filepath.Join(dir, "policy.yaml"), []byte(text), 0o644)
}

func unlabelled(s load.Shape) load.Shape {
	s.Labels, s.OwnerLabels = nil, nil
	return s
}

// made makes a population, measures, and tells how fast it was made.
func (b *bench) made(ctx context.Context, s load.Shape, act func(context.Context, *load.Population) (load.Result, error)) (load.Result, float64, error) {
	began := time.Now()
	p, err := load.Populate(ctx, b.plane.Config, s)
	if err != nil {
		return load.Result{}, 0, err
	}
	rate := float64(len(p.Dependents)) / time.Since(began).Seconds()
	if err := load.Pause(ctx, digest); err != nil {
		return load.Result{}, 0, err
	}
	result, err := act(ctx, p)
	return result, rate, err
}

func (r *report) writeEnforced(s *strings.Builder) {
	if len(r.enforced) == 0 {
		return
	}
	s.WriteString("\n| deletions | mode | plainly, objects/s | weir, objects/s | weir / plainly, by round | requests each | first after | made, of plainly |\n|---|---|---|---|---|---|---|---|\n")
	for _, e := range enforcings {
		for _, mode := range modes {
			of := func(value func(enforcedSample) float64) (v []float64) {
				for _, x := range r.enforced[e.name] {
					if x.mode == mode {
						v = append(v, value(x))
					}
				}
				return v
			}
			if plain := of(func(x enforcedSample) float64 { return x.plain.Rate() }); len(plain) == 0 {
				continue // or it was interrupted before
			}
			fmt.Fprintf(s, "| %s | %s | %s | %.0f | %s | %.2f | %.0f ms | %.2f |\n", e.name, mode,
				spread(of(func(x enforcedSample) float64 { return x.plain.Rate() })), median(of(func(x enforcedSample) float64 { return x.with.Rate() })),
				byRound(of(func(x enforcedSample) float64 { return x.with.Rate() / x.plain.Rate() })),
				median(of(func(x enforcedSample) float64 { return x.with.PerObject() })),
				median(of(func(x enforcedSample) float64 { return x.with.First.Seconds() * 1000 })),
				median(of(func(x enforcedSample) float64 { return x.made / x.madePlainly })))
		}
	}
}
