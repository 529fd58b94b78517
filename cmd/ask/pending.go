package ask

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-dev/weir/controller/insight"
)

func pendingCommand() *cobra.Command {
	a := newAsking()
	outputs := []string{"json", "yaml", "name"}
	cmd := &cobra.Command{
		Use:   "pending",
		Short: "Show all that is being deleted, by who has to act",
		Long: `Show all that is being deleted in a namespace or in the cluster, oldest first, grouped by who has to act before it
can go. Nothing has to be installed in the cluster.`,
		Example: `  kubectl weir pending -A
  kubectl weir pending -n shop`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			w, err := a.namespaceWorld(outputs)
			if err != nil {
				return err
			}
			groups := w.Pending(time.Now())
			defer unread(cmd.ErrOrStderr(), w)
			if done, err := a.print(cmd.OutOrStdout(), "PendingDeletions", map[string]any{"groups": groups, "unread": w.Unread()}); done {
				return err
			}
			if a.output == "name" {
				for _, g := range groups {
					for _, e := range g.Items {
						if _, err := fmt.Fprintln(cmd.OutOrStdout(), e.Object); err != nil {
							return err
						}
					}
				}
				return nil
			}
			return insight.DrawPending(cmd.OutOrStdout(), groups, a.style(cmd.OutOrStdout()))
		},
	}
	a.register(cmd, outputs...)
	cmd.Flags().BoolVarP(&a.allNamespaces, "all-namespaces", "A", false, "the whole cluster, with cluster-scoped objects")
	return cmd
}

// namespaceWorld is the namespace of the flags, or the cluster.
func (a *asking) namespaceWorld(outputs []string) (*insight.World, error) {
	if err := a.checkOutput(outputs...); err != nil {
		return nil, err
	}
	ctx, stop := interruptible()
	defer stop()
	namespace, err := a.namespace()
	if err != nil {
		return nil, err
	}
	return a.read(ctx, namespace)
}

func orphansCommand() *cobra.Command {
	a := newAsking()
	outputs := []string{"json", "yaml", "name"}
	cmd := &cobra.Command{
		Use:   "orphans",
		Short: "Show objects whose owners are gone or cannot be told, and what a collector does with each",
		Long: `Show objects with owners that are gone, cannot be resolved, or are not what the reference says, and what a garbage
collector does with each: delete it, take the reference off, or keep it. Nothing has to be installed in the cluster.`,
		Example: `  kubectl weir orphans -A`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			w, err := a.namespaceWorld(outputs)
			if err != nil {
				return err
			}
			all := w.Orphans()
			defer unread(cmd.ErrOrStderr(), w)
			if done, err := a.print(cmd.OutOrStdout(), "Orphans", map[string]any{"items": all, "unread": w.Unread()}); done {
				return err
			}
			if a.output == "name" {
				for _, o := range all {
					if _, err := fmt.Fprintln(cmd.OutOrStdout(), o.Object); err != nil {
						return err
					}
				}
				return nil
			}
			return insight.DrawOrphans(cmd.OutOrStdout(), all)
		},
	}
	a.register(cmd, outputs...)
	cmd.Flags().BoolVarP(&a.allNamespaces, "all-namespaces", "A", false, "the whole cluster, with cluster-scoped objects")
	return cmd
}
