package cmd

import (
	"errors"

	"github.com/spf13/cobra"
	ctrl "sigs.k8s.io/controller-runtime"
)

// upFlags are the flags of weir up: a controller's and a webhook's.
type upFlags struct {
	controllerFlags
	serverFlags
}

func upCommand() *cobra.Command {
	var f upFlags
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Run all of weir in one process, for a workstation or a small control plane",
		Long: `Run all of weir in one process, for a workstation or a small control plane. The webhook is
served where --webhook-url or --webhook-service says how the API server reaches it. In replace
mode it ends with exit code 3 where another garbage collector works.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := errors.Join(f.controllerFlags.check(), f.serverFlags.check()); err != nil {
				return err
			}
			return runController(ctrl.SetupSignalHandler(), &f.controllerFlags, &f.serverFlags)
		},
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
