// Package cmd is the command line: flags in, parts wired, manager started.
package cmd

import (
	"github.com/spf13/cobra"
)

// Root returns the weir command.
func Root() *cobra.Command {
	root := &cobra.Command{
		Use:   "weir",
		Short: "Decides what is deleted with an object of a Kubernetes cluster, and deletes it",
		Long: `Weir collects garbage in a Kubernetes cluster: it holds the ownership graph of all objects, deletes
objects that have no owner any more, and honours foreground and orphan deletion.`,
		SilenceUsage: true,
	}
	root.AddCommand(controllerCommand(), webhookCommand(), upCommand(), releaseCommand(), policyCommand(), versionCommand())
	return root
}
