package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/weir-dev/weir/e2e/load"
	"github.com/weir-dev/weir/e2e/plane"
	"github.com/weir-dev/weir/e2e/weir"
)

// A system is something that collects, to be started for each measurement.
type system struct {
	name  string
	start func(context.Context) (*running, error)
}

// running is a system that was started.
type running struct {
	*plane.Child
	metrics func(context.Context) (weir.Metrics, error)
	ready   time.Duration // from the start of the process to readiness, where that is known
	stop    func() error
}

// reference is kube-controller-manager with its collectors.
func (b *bench) reference(name string, flags ...string) system {
	return system{name, func(ctx context.Context) (*running, error) {
		if err := b.StartController(ctx, plane.Collectors, flags...); err != nil {
			return nil, err
		}
		metrics := func(ctx context.Context) (weir.Metrics, error) {
			text, err := b.PartMetrics(ctx, plane.ControllerManager)
			if err != nil {
				return nil, err
			}
			return weir.ParseMetrics(text)
		}
		return &running{Child: b.Child(plane.ControllerManager), metrics: metrics, stop: b.StopController}, nil
	}}
}

// weirAs is the binary that users run, in the mode that replaces the reference.
func (b *bench) weirAs(name, binary string, flags ...string) system {
	return system{name, func(ctx context.Context) (*running, error) {
		started := time.Now()
		p, err := weir.Start(ctx, b.weirOptions("weir", binary, flags...))
		if err != nil {
			return nil, err
		}
		return &running{Child: p.Child, metrics: p.Metrics, ready: time.Since(started),
			stop: func() error { return p.Stop(plane.DefaultGrace) }}, nil
	}}
}

// weirOptions run a weir that logs as it does by default.
func (b *bench) weirOptions(name, binary string, flags ...string) weir.Options {
	flags = append([]string{"--log-format=text", "--verbosity=0"}, flags...)
	return weir.Options{Binary: binary, Kubeconfig: b.self.kubeconfig, Dir: b.Dir, Name: name, Flags: flags}
}

// while does something while a system runs, which worked for the first time after awake.
func (b *bench) while(ctx context.Context, s system, do func(r *running, awake time.Duration) error) error {
	r, awake, err := b.startAwake(ctx, s)
	if err != nil {
		return err
	}
	defer b.end(r)
	if err := pause(ctx, digest); err != nil {
		return err
	}
	return do(r, awake)
}

// end ends a system. What was measured stands when it does not end well.
func (b *bench) end(r *running) {
	if err := r.stop(); err != nil {
		b.say("%v", err)
	}
}

// startAwake starts a system and returns when it works: when it has collected an object whose owner
// never existed. A health endpoint that answers says less, and not the same of each system. It also
// returns how long that took from the start of the process.
func (b *bench) startAwake(ctx context.Context, s system) (*running, time.Duration, error) {
	namespace, err := load.NewNamespace(ctx, b.admin.dynamic)
	if err != nil {
		return nil, 0, err
	}
	absent := load.Object{Name: "nobody", UID: "00000000-0000-0000-0000-000000000001"}
	canary, err := load.Create(ctx, b.admin.dynamic, load.ConfigMap, namespace.Name, "canary", nil, absent)
	if err != nil {
		return nil, 0, err
	}
	in := b.admin.dynamic.Resource(load.ConfigMap.GVR()).Namespace(namespace.Name)
	w, err := in.Watch(ctx, metav1.ListOptions{ResourceVersion: canary.ResourceVersion})
	if err != nil {
		return nil, 0, err
	}
	return startUntilDeleted(ctx, s, w)
}

// startDraining starts a system and returns when it empties namespaces: when one that was deleted
// before is gone.
func (b *bench) startDraining(ctx context.Context, s system) (*running, error) {
	canary, err := load.NewNamespace(ctx, b.admin.dynamic)
	if err != nil {
		return nil, err
	}
	in := b.admin.dynamic.Resource(load.Namespace.GVR())
	w, err := in.Watch(ctx, metav1.ListOptions{
		FieldSelector: "metadata.name=" + canary.Name, ResourceVersion: canary.ResourceVersion,
	})
	if err == nil {
		err = in.Delete(ctx, canary.Name, metav1.DeleteOptions{})
	}
	if err != nil {
		return nil, err
	}
	r, _, err := startUntilDeleted(ctx, s, w)
	return r, err
}

// startUntilDeleted starts a system and returns when what w watches is gone.
func startUntilDeleted(ctx context.Context, s system, w watch.Interface) (*running, time.Duration, error) {
	defer w.Stop()
	started := time.Now()
	r, err := s.start(ctx)
	if err != nil {
		return nil, 0, fmt.Errorf("start %s: %w", s.name, err)
	}
	for err == nil {
		select {
		case e, ok := <-w.ResultChan():
			if ok && e.Type == watch.Deleted {
				return r, time.Since(started), nil
			}
			if !ok || e.Type == watch.Error {
				err = errors.New("the watch of its first work ended")
			}
		case <-r.Exited():
			err = fmt.Errorf("it ended; its log ends with\n%s", r.Tail(20))
		case <-ctx.Done():
			err = fmt.Errorf("wait for its first work: %w", ctx.Err())
		}
	}
	_ = r.stop() // the first error says more
	return nil, 0, fmt.Errorf("start %s: %w", s.name, err)
}

// digest is how long the API server is left alone between making the objects and deleting them.
// Without it the floor, which needs no start of a process, would run while the server still
// digests, and look worse than it is.
const digest = 2 * time.Second

// pause waits, and not for longer than ctx.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
