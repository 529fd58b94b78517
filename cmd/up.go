package cmd

import (
	"github.com/spf13/cobra"
	ctrl "sigs.k8s.io/controller-runtime"
)

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
