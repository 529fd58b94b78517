package ask

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/weir-dev/weir/ask/insight"
)

func whyCommand() *cobra.Command {
	a := newAsking()
	cmd := &cobra.Command{
		Use:   "why (TYPE NAME | TYPE/NAME)",
		Short: "Say why an object is there, why it does not go, and who has to act",
		Long: `Say why an object exists, or still exists: what it waits for, who has to act, on what evidence,
and which command shows more. The answer names the evidence as it was found, which proves no
more than it says. Nothing has to be installed in the cluster.

For an object that is gone it says what Weir has recorded of its deletion (see history).`,
		Example: `  kubectl weir why namespace shop
  kubectl weir why pvc/data-0`,
		RunE: func(cmd *cobra.Command, args []string) error {
			err := a.about(cmd, args, func(ctx context.Context, w *insight.World, o *resource.Info) error {
				facts, err := a.facts(ctx, w, o)
				if err != nil {
					return err
				}
				answer, _ := w.Why(whole(o).GetUID(), facts, time.Now()) // it was found
				answer.Try = w.Try(answer)
				answer.WithFlags(a.clusterFlags())
				if done, err := a.print(cmd.OutOrStdout(), "Answer", map[string]any{
					"object": answer.Object, "deleting": answer.Deleting, "state": answer.State, "causes": answer.Causes,
					"unread": w.Unread(),
				}); done {
					return err
				}
				return answer.Draw(cmd.OutOrStdout(), a.style(cmd.OutOrStdout()))
			})
			if apierrors.IsNotFound(err) && len(args) > 0 {
				return a.whyGone(cmd, args, err)
			}
			return err
		},
	}
	a.register(cmd, "json", "yaml")
	return cmd
}

// whyGone says of an object that does not exist what is recorded of its deletion.
func (a *asking) whyGone(cmd *cobra.Command, args []string, notFound error) error {
	ctx := cmd.Context()
	namespace, about, err := a.historyOf(args)
	if err != nil {
		return notFound
	}
	events, err := a.cascades(ctx, namespace)
	if err != nil {
		return fmt.Errorf("%w; and Events, which may tell why, cannot be read: %w", notFound, err)
	}
	answer, ok := insight.Gone(about.Object, about.kindName, events, time.Now())
	if !ok {
		return fmt.Errorf("%w, and nothing is recorded of its deletion: the API server's audit log has each request",
			notFound)
	}
	answer.WithFlags(a.clusterFlags())
	if done, err := a.print(cmd.OutOrStdout(), "Answer", map[string]any{
		"object": answer.Object, "deleting": false, "gone": true, "state": answer.State, "causes": answer.Causes,
	}); done {
		return err
	}
	return answer.Draw(cmd.OutOrStdout(), a.style(cmd.OutOrStdout()))
}
