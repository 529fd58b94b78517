// Package cmd is the command line: flags in, parts wired, manager started. It has no locks. The
// goroutines of a process belong to controller-runtime's manager, which joins them before the
// process ends; weir gc has a group of its own (gc.go).
package cmd

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/weir-dev/weir/controller"
	"github.com/weir-dev/weir/internal/tools/release"
)

// ExitCode returns the exit code of a process: 0; 1 after an error; 3 if it must not collect
// because another garbage collector does; 4 if Helm did not run a hook of Helm.
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

// errInterrupted is the error of a command that a signal has ended. The errors of its requests
// would say nothing about the cluster.
var errInterrupted = errors.New("interrupted")

// orInterrupted returns err, or errInterrupted if ctx has ended.
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
		Long: `Weir collects garbage in a Kubernetes cluster: it holds the ownership graph of all objects,
deletes objects that have no owner any more, and honours foreground and orphan deletion.`,
		SilenceUsage: true,
	}
	root.AddCommand(controllerCommand(), webhookCommand(), upCommand(), releaseCommand(), doctorCommand(),
		policyCommand(), gcCommand(), versionCommand())
	return root
}
