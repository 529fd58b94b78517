package cmd

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
	ctrl "sigs.k8s.io/controller-runtime"
)

// upFlags are those of weir up: a controller's and a webhook's.
type upFlags struct {
	controllerFlags
	serverFlags
}

func upCommand() *cobra.Command {
	var f upFlags
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Run all of weir in one process, for a workstation or a small control plane",
		Long: `Run all of weir in one process, for a workstation or a small control plane. The webhook is served where --webhook-url
or --webhook-service says how the API server reaches it. In replace mode it ends with exit code 3 where another garbage collector works.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return runUp(ctrl.SetupSignalHandler(), &f) },
	}
	fs := cmd.Flags()
	f.clusterFlags.register(fs)
	f.processFlags.register(fs)
	f.collectorFlags.register(fs, false)
	f.policyFlags.register(fs)
	f.targetFlags.register(fs)
	f.serverFlags.register(fs) //nolint:staticcheck // each group by its name
	return cmd
}

func runUp(ctx context.Context, f *upFlags) error {
	if err := errors.Join(f.controllerFlags.check(), f.serverFlags.check()); err != nil {
		return err
	}
	if !f.set() || f.mode == modeShadow {
		return runController(ctx, &f.controllerFlags, true)
	}
	b, err := begin(ctx, &f.clusterFlags, &f.processFlags, &f.policyFlags, &f.targetFlags)
	if err != nil {
		return err
	}
	if b.elected, err = f.election(b.config, b.log); err != nil {
		return err
	}
	source, err := f.trusting(ctx, b.config, b.log)
	if err != nil {
		return err
	}
	token := f.tokens(b.config, true, b.log)
	c, err := f.controller(b, source, token, true)
	if err != nil {
		return err
	}
	m := newManagement(b.config, &f.processFlags, &f.collectorFlags)
	if err := m.collect(b, c); err != nil {
		return err
	}
	ctx, err = f.serve(ctx, m, b, c.Facts(), c.Requests(), c.Guard(), f.canaryNamespace(), source, token)
	if err != nil {
		return err
	}
	return m.run(ctx)
}
