// Package cmd is the command line: flags in, parts wired, manager started.
//
// It has no locks, and the goroutines of a process are those of controller-runtime's manager, which
// ends them all before the process ends; weir gc has a group of its own (gc.go).
package cmd

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/weir-dev/weir/controller"
	"github.com/weir-dev/weir/internal/tools/release"
)

// ExitCode is what a process ends with: 0, 1 after an error, 3 if it must not collect because
// another garbage collector does, 4 if a hook of Helm was not run by Helm.
func ExitCode(err error) int {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, controller.ErrOtherCollector), errors.Is(err, errLeftOut):
		return 3
	case errors.Is(err, release.ErrNotHelm):
		return 4
	}
	return 1
}

// errInterrupted is what a command fails with that a signal has ended: what its requests made of
// that says nothing about the cluster.
var errInterrupted = errors.New("interrupted")

// orInterrupted is an error, or that of a command whose context has ended before.
func orInterrupted(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return errInterrupted
	}
	return err
}

// Root returns the weir command.
func Root() *cobra.Command {
	root := &cobra.Command{
		Use:   "weir",
		Short: "Decides what is deleted with an object of a Kubernetes cluster, and deletes it",
		Long: `Weir collects garbage in a Kubernetes cluster: it holds the ownership graph of all objects, deletes
objects that have no owner any more, and honours foreground and orphan deletion.`,
		SilenceUsage: true,
	}
	root.AddCommand(controllerCommand(), webhookCommand(), upCommand(), releaseCommand(), doctorCommand(), shadowCommand(), policyCommand(), gcCommand(), versionCommand())
	return root
}
