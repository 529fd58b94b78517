package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/weir-dev/weir/e2e/load"
	"github.com/weir-dev/weir/e2e/plane"
)

// An enforcing is deletions that go as a policy says, by its default.
type enforcing struct {
	name string
	// propagation is the default of the policy, and more of its propagation, which is about what
	// carries the label enforced.
	propagation string
	layout      func(int) load.Layout
	act         func(context.Context, *bench, *rest.Config, *load.Population) (load.Result, error)
	// plainly is what the rate is compared with: the floor, if it is nil, or the same without a
	// policy.
	plainly func(context.Context, *bench, *load.Population) (load.Result, error)
	// byHand does without Weir what two writes an object are: they carry a finalizer that nothing
	// knows, and the simplest controller removes it. nil: it is not measured.
	byHand func(ctx context.Context, b *bench, mode string, user *rest.Config, p *load.Population) (load.Result, error)
	// once: one round says enough of it.
	once bool
	// collected: the built-in collector has a part in it, whose own limits say something then.
	collected bool
}

var enforced = map[string]string{"enforced": "yes"}

var enforcings = []enforcing{
	{name: "enforced Foreground, no dependents", propagation: "Foreground", layout: looseEnforced, act: deleteEach, byHand: unheldEach},
	{name: "enforced Orphan, no dependents", propagation: "Orphan", layout: looseEnforced, act: deleteEach, byHand: unheldEach},
	// Alone it asks for nothing that has to be enforced; with dependents that are kept it does, be
	// there some or none.
	{name: "enforced Background, no dependents", propagation: `Background, dependents: [{apiGroups: [""], resources: [podtemplates], action: Orphan}]`, layout: looseEnforced, act: deleteEach, byHand: unheldEach, once: true},
	{name: "enforced Foreground, in a background cascade", propagation: "Foreground", layout: func(n int) load.Layout {
		s := load.Flat(n)
		s.Labels = enforced
		return s
	}, act: deleteOwner, byHand: unheldCascade, collected: true},
	{name: "enforced Foreground, of the owner of plain dependents", propagation: "Foreground", layout: func(n int) load.Layout {
		s := load.Flat(n)
		s.OwnerLabels = enforced
		return s
	}, act: deleteOwner, plainly: func(ctx context.Context, b *bench, p *load.Population) (load.Result, error) {
		return load.Cascade(ctx, b.cfg, b.plane.Metrics, p, metav1.DeletePropagationForeground)
	}, collected: true},
}

func looseEnforced(n int) load.Layout {
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

// unheldEach has the user delete each object, as the floor does.
func unheldEach(ctx context.Context, b *bench, _ string, user *rest.Config, p *load.Population) (result load.Result, err error) {
	policy := metav1.DeletePropagationBackground
	err = load.RemoveFinalizers(ctx, b.cfg, p, func(ctx context.Context) error {
		result, err = load.Measure(ctx, b.plane.Config, p, policy, func(ctx context.Context) error { return load.Floor(ctx, user, p, policy) })
		return err
	})
	return result, err
}

// unheldCascade has the built-in collector delete them, beside which Weir is measured; where Weir
// replaces it, the user.
func unheldCascade(ctx context.Context, b *bench, mode string, user *rest.Config, p *load.Population) (result load.Result, err error) {
	if mode == "replace" {
		return unheldEach(ctx, b, mode, user, p)
	}
	err = load.RemoveFinalizers(ctx, b.cfg, p, func(ctx context.Context) error {
		result, err = deleteOwner(ctx, b, user, p)
		return err
	})
	return result, err
}

// modes are in which weir runs, in the place of the built-in collector or beside it, without limits
// and at its defaults.
var modes = []string{"replace", "companion", atDefaults}

const atDefaults = "companion, the collector at its defaults"

// modesOf are those in which a round is measured. The defaults are 20 requests a second: one round
// of a few objects takes long enough.
func (b *bench) modesOf(e enforcing, round int) []string {
	if e.collected && round == 0 && b.defaultN > 0 {
		return modes
	}
	return modes[:2]
}

// enforcedSample is one round of one mode.
type enforcedSample struct {
	mode                string
	plain, byHand, with turn
	// alone is how long an object terminates that is deleted when nothing else is, where objects
	// without dependents are: the median.
	alone time.Duration
}

// turn is a population that was made and deleted.
type turn struct {
	load.Result
	made   float64 // objects a second
	server float64 // what an object's deletion takes of the API server's CPU, in microseconds
}

func (b *bench) compareEnforcing(ctx context.Context, e enforcing, r *report) error {
	user, _, err := load.User(ctx, b.plane, "bench")
	if err != nil {
		return err
	}
	rounds := b.rounds
	if e.once {
		rounds = 1
	}
	for round := range b.inTime(rounds) {
		for _, mode := range b.modesOf(e, round) {
			x, err := b.enforcing(ctx, e, mode, user)
			if err != nil {
				return fmt.Errorf("%s: %w", mode, err)
			}
			r.enforced[e.name] = append(r.enforced[e.name], x)
			b.say("%s, %s, round %d: plainly %.0f/s, by hand %.0f/s, weir %.0f/s: %.2f; %.2f requests each %v, the first after %s; made %.0f/s, plainly %.0f/s; the API server's CPU, µs each: %.0f, %.0f, %.0f; alone %s",
				e.name, mode, round+1, x.plain.Rate(), x.byHand.Rate(), x.with.Rate(), x.with.Rate()/x.plain.Rate(), x.with.PerObject(), x.with.Requests,
				x.with.First.Round(time.Millisecond), x.with.made, x.plain.made, x.plain.server, x.byHand.server, x.with.server, x.alone.Round(100*time.Microsecond))
		}
	}
	return nil
}

// inMode is how a round goes in a mode: how weir runs, with how many objects, and beside which
// collector, if any.
func (b *bench) inMode(e enforcing, mode string) (in enforcing, weir string, n int, collector load.System) {
	if mode != atDefaults {
		return e, mode, b.n, b.lifted
	}
	e.byHand = nil // it is that collector's rate as well, as it is without a policy, which is measured
	if e.plainly == nil {
		e.plainly = func(ctx context.Context, b *bench, p *load.Population) (load.Result, error) {
			return deleteOwner(ctx, b, b.cfg, p)
		}
	}
	return e, "companion", b.defaultN, b.limited
}

// enforcing measures one round: plainly first, then by hand, and then under the policy.
func (b *bench) enforcing(ctx context.Context, e enforcing, mode string, user *rest.Config) (x enforcedSample, err error) {
	x.mode = mode
	e, mode, n, collector := b.inMode(e, mode)
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
	if e.plainly == nil { // with no webhook in the way
		if x.plain, err = b.made(ctx, unlabelled(e.layout(n)), plain); err != nil {
			return x, err
		}
	}
	if mode == "companion" {
		running, _, startErr := load.StartAwake(ctx, b.plane.Config, collector)
		if startErr != nil {
			return x, startErr
		}
		defer func() { err = errors.Join(err, running.Stop()) }()
	}
	if e.byHand != nil {
		x.byHand, err = b.made(ctx, heldByHand(e.layout(n)), func(ctx context.Context, p *load.Population) (load.Result, error) {
			return e.byHand(ctx, b, mode, user, p)
		})
		if err != nil {
			return x, fmt.Errorf("by hand: %w", err)
		}
	}
	g, err := load.StartWeirPair(ctx, b.plane, b.weir, b.kubeconfig, dir, mode)
	if err != nil {
		return x, err
	}
	defer func() { err = errors.Join(err, g.Stop(ctx)) }()
	if err := load.AwaitFinalizers(ctx, user, enforced); err != nil {
		return x, err
	}
	if e.plainly != nil { // by the same collector
		if x.plain, err = b.made(ctx, unlabelled(e.layout(n)), plain); err != nil {
			return x, err
		}
	}
	x.with, err = b.made(ctx, e.layout(n), func(ctx context.Context, p *load.Population) (load.Result, error) { return e.act(ctx, b, user, p) })
	if err != nil || !e.layout(1).Loose {
		return x, err
	}
	x.alone, err = b.endsAlone(ctx, e.layout(alone), user)
	return x, err
}

// alone is how many objects are deleted one by one.
const alone = 100

func (b *bench) endsAlone(ctx context.Context, s load.Layout, user *rest.Config) (time.Duration, error) {
	p, err := load.Populate(ctx, b.plane.Config, s)
	if err == nil {
		err = load.Pause(ctx, digest)
	}
	if err != nil {
		return 0, err
	}
	endings, err := load.Endings(ctx, b.plane.Config, user, p)
	if err != nil {
		return 0, err
	}
	return percentile(endings, 50, func(e load.Ending) time.Duration { return e.Terminated }), nil
}

// percentile is by nearest rank.
func percentile(all []load.Ending, p int, of func(load.Ending) time.Duration) time.Duration {
	var took []time.Duration
	for _, e := range all {
		took = append(took, of(e))
	}
	slices.Sort(took)
	return took[(len(took)*p+99)/100-1]
}

// enforcedPolicy writes a policy about what carries the label, and returns where.
func (b *bench) enforcedPolicy(propagation string) (dir string, err error) {
	if dir, err = os.MkdirTemp(b.plane.Dir, "policies-"); err != nil {
		return "", err
	}
	text := fmt.Sprintf("apiVersion: weir.dev/v1beta1\nkind: DeletionPolicy\nmetadata: {name: bench}\n"+
		"spec: {propagation: {default: %s}, match: {resources: [{apiGroups: [\"\"], resources: [configmaps]}], objectSelector: {matchLabels: {enforced: \"yes\"}}}}\n", propagation)
	return dir, os.WriteFile(filepath.Join(dir, "policy.yaml"), []byte(text), 0o644)
}

func unlabelled(s load.Layout) load.Layout {
	s.Labels, s.OwnerLabels = nil, nil
	return s
}

func heldByHand(s load.Layout) load.Layout {
	s = unlabelled(s)
	s.Finalizers = []string{load.ForeignFinalizer}
	return s
}

// made makes a population and measures its deletion.
func (b *bench) made(ctx context.Context, s load.Layout, act func(context.Context, *load.Population) (load.Result, error)) (t turn, err error) {
	began := time.Now()
	p, err := load.Populate(ctx, b.plane.Config, s)
	if err != nil {
		return t, err
	}
	t.made = float64(len(p.Dependents)) / time.Since(began).Seconds()
	if err := load.Pause(ctx, digest); err != nil {
		return t, err
	}
	server := b.plane.Child(plane.APIServer)
	before, err := load.CPU(server)
	if err != nil {
		return t, err
	}
	if t.Result, err = act(ctx, p); err != nil {
		return t, err
	}
	after, err := load.CPU(server)
	t.server = (after - before) / float64(len(p.Dependents)) * 1e6
	return t, err
}
