package ask

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-dev/weir/ask/insight"
)

func pendingCommand() *cobra.Command {
	return survey(&cobra.Command{
		Use:   "pending",
		Short: "Show all that is being deleted, by who has to act",
		Long: `Show all that is being deleted in a namespace or in the cluster, oldest first, grouped by who
has to act before it can go. Nothing has to be installed in the cluster.`,
		Example: `  kubectl weir pending -A
  kubectl weir pending -n shop`,
	}, func(ctx context.Context, a *asking, w *insight.World, namespace string) (findings, error) {
		client, err := a.client()
		if err != nil {
			return findings{}, err
		}
		(&factReader{client: client, world: w}).heard(ctx, namespace)
		groups := w.Pending(time.Now())
		return findings{"PendingDeletions", "groups", groups, func(out io.Writer, style insight.Style) error {
			return insight.DrawPending(out, groups, namespace, style)
		}}, nil
	})
}

func orphansCommand() *cobra.Command {
	return survey(&cobra.Command{
		Use:   "orphans",
		Short: "Show objects whose owners are gone or cannot be determined, and what a collector does with each",
		Long: `Show objects with owners that are gone, cannot be resolved, or are not what the reference says,
and what a garbage collector does with each: delete it, take the reference off, or keep it.
Nothing has to be installed in the cluster.`,
		Example: `  kubectl weir orphans -A`,
	}, func(_ context.Context, _ *asking, w *insight.World, namespace string) (findings, error) {
		all := w.Orphans()
		return findings{"Orphans", "items", all, func(out io.Writer, style insight.Style) error {
			return insight.DrawOrphans(out, all, namespace, style)
		}}, nil
	})
}

// findings is what a survey has found, for each output format.
type findings struct {
	kind, field string // of the JSON
	all         any
	draw        func(io.Writer, insight.Style) error
}

// survey makes a command that reads a namespace, or the cluster, and takes no arguments.
func survey(
	cmd *cobra.Command, look func(context.Context, *asking, *insight.World, string) (findings, error),
) *cobra.Command {
	a := newAsking()
	cmd.Args = cobra.NoArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		ctx := cmd.Context()
		namespace, err := a.namespace()
		if err != nil {
			return err
		}
		w, err := a.read(ctx, namespace)
		if err != nil {
			return err
		}
		defer a.unread(cmd.ErrOrStderr(), w)
		f, err := look(ctx, a, w, namespace)
		if err != nil {
			return err
		}
		out := cmd.OutOrStdout()
		if done, err := a.print(out, f.kind, map[string]any{f.field: f.all, "unread": w.Unread()}); done {
			return err
		}
		return f.draw(out, a.style(out))
	}
	a.register(cmd, "json", "yaml")
	cmd.Flags().BoolVarP(&a.allNamespaces, "all-namespaces", "A", false, "the whole cluster, with cluster-scoped objects")
	return cmd
}
