// Package cmd is the command line: flags in, parts wired, manager started.
package cmd

import (
	"github.com/spf13/cobra"
)

// Root returns the weir command.
func Root() *cobra.Command {
	root := &cobra.Command{
		Use:   "weir",
		Short: "Decides what falls when something in a Kubernetes cluster is deleted, and carries it out",
		Long: `Weir collects garbage in a Kubernetes cluster: it holds the ownership graph of all objects, deletes
what nobody owns any more, and honours foreground and orphan deletion.`,
		SilenceUsage: true,
	}
	root.AddCommand(controllerCommand(), webhookCommand(), upCommand(), releaseCommand(), policyCommand(), versionCommand())
	return root
}
