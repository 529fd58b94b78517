package differential

import (
	"context"
	"io"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/weir-dev/weir/e2e/load"
	"github.com/weir-dev/weir/e2e/plane"
	"github.com/weir-dev/weir/e2e/weir"
)

// shadowLate is short enough for a difference to be told before it is undone, and long for
// kube-controller-manager beside all the others: what it tries again shares ten attempts a second
// (RB 3.1), and the worlds are full of references that it tries for ever. After 5 s two canaries of
// some thousands still waited for it.
const shadowLate = 10 * time.Second

// Start runs two control planes, one with each collector, until Stop; with a shadow, a weir in
// shadow mode beside the reference. Weir's logs are in dir.
func Start(ctx context.Context, binary, dir string, shadow bool, out io.Writer) (*Pair, error) {
	p := &Pair{}
	if err := p.start(ctx, binary, dir, shadow, out); err != nil {
		p.Stop()
		return nil, err
	}
	return p, nil
}

func (p *Pair) start(ctx context.Context, binary, dir string, shadow bool, out io.Writer) error {
	reference, err := p.plane(ctx, out)
	if err != nil {
		return err
	}
	// Its client's own limit would be what is waited for.
	if err := reference.StartController(ctx, plane.CollectorOnly, "--kube-api-qps=1000", "--kube-api-burst=1000"); err != nil {
		return err
	}
	if shadow {
		if err := p.startShadow(ctx, reference, binary, dir); err != nil {
			return err
		}
	}
	ours, err := p.plane(ctx, out)
	if err != nil {
		return err
	}
	_, kubeconfig, err := load.Weir(ctx, ours)
	if err != nil {
		return err
	}
	process, err := weir.Start(ctx, weir.Options{Binary: binary, Kubeconfig: kubeconfig, Dir: dir, Flags: []string{weir.NoBrake}})
	if err != nil {
		return err
	}
	p.stops = append(p.stops, process.Kill)
	if p.Reference, err = NewSide(ctx, "kube-controller-manager", reference.Config, nil); err != nil {
		return err
	}
	p.Weir, err = NewSide(ctx, "weir", ours.Config, process.AwaitIdle)
	return err
}

func (p *Pair) startShadow(ctx context.Context, reference *plane.Plane, binary, dir string) error {
	_, kubeconfig, err := load.Weir(ctx, reference)
	if err != nil {
		return err
	}
	p.Shadow, err = weir.StartShadow(ctx, weir.Options{Binary: binary, Kubeconfig: kubeconfig, Dir: dir}, shadowLate)
	if err != nil {
		return err
	}
	p.stops = append(p.stops, p.Shadow.Kill)
	return nil
}

// plane is a control plane that serves all kinds.
func (p *Pair) plane(ctx context.Context, out io.Writer) (*plane.Plane, error) {
	started, err := plane.Start(ctx, plane.Options{Out: out})
	if err != nil {
		return nil, err
	}
	p.stops = append(p.stops, func() { _ = started.Stop() }) // a directory that stays is no failure
	for _, k := range Kinds {
		if k.Group == group {
			scope := apiextensionsv1.NamespaceScoped
			if k.Cluster {
				scope = apiextensionsv1.ClusterScoped
			}
			kind := load.Kind{GroupVersionKind: k.GroupVersionKind, Resource: k.Resource}
			if err := load.Define(ctx, started.Config, load.Definition(kind, scope, k.Version, k.Other)); err != nil {
				return nil, err
			}
		}
	}
	return started, nil
}
