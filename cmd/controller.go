package cmd

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/weir-dev/weir/certs"
	"github.com/weir-dev/weir/controller"
)

// controllerFlags are the flags of weir controller.
type controllerFlags struct {
	weirFlags
	collectorFlags
}

func (f *controllerFlags) register(fs *pflag.FlagSet, leaderElect bool) {
	f.weirFlags.register(fs)
	f.collectorFlags.register(fs, leaderElect)
}

func (f *controllerFlags) check() error {
	return errors.Join(f.processFlags.check(), f.collectorFlags.check(), f.policyFlags.check(), f.targetFlags.check())
}

func controllerCommand() *cobra.Command {
	var f controllerFlags
	cmd := &cobra.Command{
		Use:   "controller",
		Short: "Run the collector",
		Long: `Run the collector, and what enforces policies but the webhook. In replace mode the cluster's
kube-controller-manager must run without them
(-garbage-collector-controller,-namespace-controller at the end of its --controllers), or not at
all. In companion mode it does the collecting, and weir only what policies ask for.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return runController(ctrl.SetupSignalHandler(), &f, nil) },
	}
	f.register(cmd.Flags(), true)
	return cmd
}

// runController wires the parts and runs them until ctx ends, at a signal, or until the Lease is
// lost. With server, all of weir runs in this process, and the webhook is served if the flags say
// how it is reached.
func runController(ctx context.Context, f *controllerFlags, server *serverFlags) error {
	err := f.check()
	if server != nil {
		err = errors.Join(err, server.check())
	}
	if err != nil {
		return err
	}
	if f.mode == modeShadow {
		return f.compare(ctx)
	}
	b, err := f.begin(ctx)
	if err != nil {
		return err
	}
	if b.elected, err = f.election(b.config, b.log); err != nil {
		return err
	}
	var source certs.Source
	var token *certs.Token
	if f.set() {
		source, token = f.source(b.config, true, b.log), f.tokens(b.config, true, b.log)
	}
	c, err := f.controller(b, source, token, server != nil)
	if err != nil {
		return err
	}
	m := newManagement(b.config, &f.processFlags, &f.collectorFlags)
	if err := m.collect(b, c); err != nil {
		return err
	}
	if source != nil && server != nil {
		ctx, err = server.serve(ctx, m, b, c.Facts(), f.canaryNamespace(), source, token)
		if err != nil {
			return err
		}
		return m.run(ctx)
	}
	if source != nil {
		m.follow("certificates", source.Start)
		m.certificate = source.GetCertificate
		m.follow("token", token.Start)
	}
	m.ready("enforced", c.Enforced)
	return m.run(ctx)
}

// controller returns the collector. Without a source, this process does not write webhook
// configurations. With once it ends if another garbage collector works, instead of waiting for that
// to end.
func (f *controllerFlags) controller(
	b *begun, source certs.Source, token *certs.Token, once bool,
) (*controller.Controller, error) {
	o := controller.Options{
		Config: b.config, Ignored: f.ignored(), Namespaces: f.namespaceSyncs(), Companion: f.mode == modeCompanion,
		Shadow: f.mode == modeShadow, ShadowLate: f.shadowLate, Home: f.home(),
		Policies: b.state, Brake: f.brake, ArchiveBytes: int64(f.archiveMiB) << 20,
		Canary: f.canaryNamespace(), CanaryStands: f.canary, CanaryOnce: once,
		Registry: metrics.Registry, Log: b.log,
	}
	if b.elected != nil {
		o.Lease = b.elected
	}
	if source != nil {
		o.Webhooks, o.Seals = f.target(source, token), token
		o.Webhooks.InProcessOff, o.Webhooks.InProcessOverlap = f.inProcess == inProcessOff, f.overlap
	}
	c, err := controller.New(o)
	if err != nil {
		return nil, fmt.Errorf("set up the controller: %w", err)
	}
	return c, nil
}

func upCommand() *cobra.Command {
	var f controllerFlags
	var server serverFlags
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Run all of weir in one process, for a workstation or a small control plane",
		Long: `Run all of weir in one process, for a workstation or a small control plane. The webhook is
served where --webhook-url or --webhook-service says how the API server reaches it. In replace
mode it ends with exit code 3 where another garbage collector works.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return runController(ctrl.SetupSignalHandler(), &f, &server) },
	}
	f.register(cmd.Flags(), false)
	server.register(cmd.Flags())
	return cmd
}
