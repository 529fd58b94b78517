package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/rest"

	"github.com/weir-dev/weir/e2e/load"
	"github.com/weir-dev/weir/e2e/plane"
	"github.com/weir-dev/weir/e2e/scale"
)

type bench struct {
	options
	started time.Time
	plane   *plane.Plane
	// user is an ordinary one, whose requests the webhook is asked about; the floor's requests are
	// sent as weir's are.
	user, asWeir *rest.Config
	kubeconfig   string // of weir

	sampler *scale.Sampler
	sampled []scale.Sample
	report  report

	all     []*scale.Namespace
	untaken []*scale.Namespace // those of all that nothing was done to
	live    int
	leading *load.Running
	running []*load.Running // all that were started, and are ended at last
}

// A phase is one thing to measure.
type phase struct {
	name string
	run  func(context.Context) error
	// needed: without it nothing that follows can be measured.
	needed bool
}

// updates is the phase of which the memory is told.
const updates = "updates"

// phases are in the order in which they need one another, what matters most first as far as that
// can be.
func (b *bench) phases() []phase {
	return []phase{
		{"empty", b.weighEmpty, false},
		{"populate", b.populate, true},
		{"webhook", b.ask, false},
		{"start", b.start, true},
		{updates, b.update, false},
		{"cascade", b.cascade, false},
		{"fail-over", b.failOver, false},
		{"namespace", b.drain, false},
		{"floor", b.floor, false},
	}
}

// progressEvery is how often is said how far it is.
const progressEvery = 15 * time.Second

// measure runs the phases until one fails that is needed, or the time is up, which is no error.
func (b *bench) measure(ctx context.Context) error {
	if err := b.prepare(ctx); err != nil {
		return err
	}
	b.sampler = scale.NewSampler(ctx, b.plane.Child(plane.APIServer), b.plane.Child(plane.Etcd))
	defer func() {
		b.sampled = b.sampler.Stop()
		for _, r := range b.running {
			r.Kill()
		}
	}()
	watched, end := context.WithCancel(ctx)
	defer end()
	go b.progress(watched)
	var errs []error
	for _, p := range b.phases() {
		b.say("%s", p.name)
		b.sampler.Phase(p.name)
		err := p.run(ctx)
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			b.report.cut = p.name
			b.say("the time is up")
			return errors.Join(errs...)
		}
		if err == nil {
			continue
		}
		err = fmt.Errorf("%s: %w", p.name, err)
		b.say("%v", err)
		b.report.failed = append(b.report.failed, p.name)
		errs = append(errs, err)
		if p.needed || ctx.Err() != nil {
			break
		}
	}
	return errors.Join(errs...)
}

func (b *bench) prepare(ctx context.Context) (err error) {
	if b.asWeir, b.kubeconfig, err = load.ServiceAccount(ctx, b.plane); err != nil {
		return err
	}
	if b.user, _, err = load.User(ctx, b.plane, "scale"); err != nil {
		return err
	}
	for _, kind := range scale.Custom() {
		if err := load.Define(ctx, b.plane.Config, kind); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) progress(ctx context.Context) {
	for load.Pause(ctx, progressEvery) == nil {
		x, ok := b.sampler.Last()
		if !ok {
			continue
		}
		line := fmt.Sprintf("  %s: %d made, %d changed, %d deleted;", x.Phase, x.Made, x.Changed, x.Deleted)
		for _, name := range processes {
			if rss := x.Memory[name]; rss > 0 {
				line += fmt.Sprintf(" %s %.0f MB", name, mb(rss))
			}
		}
		b.say("%s", line)
	}
}

// processes are whose memory is told.
var processes = []string{"weir", "standby", string(plane.APIServer), string(plane.Etcd)}

// weirOf is the system, which works while it holds its Lease, as in a cluster.
func (b *bench) weirOf() load.System {
	flags := append([]string{"--leader-elect=true", "--leader-elect-lease-duration", b.lease.String()}, b.weirFlags...)
	return load.Weir(b.plane, b.weir, b.kubeconfig, flags...)
}

// take is a tenth of the namespaces, to which nothing was done.
func (b *bench) take() []*scale.Namespace {
	n := namespaces / 10
	taken := b.untaken[:n]
	b.untaken = b.untaken[n:]
	return taken
}

func mb(bytes uint64) float64 { return float64(bytes) / 1e6 }
