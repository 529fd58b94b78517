package ask

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/weir-dev/weir/ask/insight"
)

func treeCommand() *cobra.Command {
	a := newAsking()
	cmd := &cobra.Command{
		Use:   "tree (TYPE NAME | TYPE/NAME)",
		Short: "Show who owns an object, and what it owns",
		Long: `Show who owns an object, and what it owns: its owners above it and its dependents below, with
what is being deleted, what holds it and what blocks its owner. Of a namespace it also shows
what is in it, of a definition its objects: without ages, unless with --full. Nothing has to be
installed in the cluster.

  ▶  the object
  !  is being deleted
  ?  names an owner that is not there`,
		Example: `  kubectl weir tree deployment web
  kubectl weir tree namespace shop`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.about(cmd, args, func(_ context.Context, w *insight.World, o *resource.Info) error {
				out, roots := cmd.OutOrStdout(), w.Tree(whole(o).GetUID(), time.Now())
				if done, err := a.print(out, "Tree", map[string]any{"roots": roots, "unread": w.Unread()}); done {
					return err
				}
				return insight.DrawTree(out, roots, a.style(out))
			})
		},
	}
	a.register(cmd, "json", "yaml")
	return cmd
}

// about calls answer with the one object that the arguments mean.
func (a *asking) about(
	cmd *cobra.Command, args []string, answer func(context.Context, *insight.World, *resource.Info) error,
) error {
	ctx := cmd.Context()
	w, o, err := a.one(ctx, args)
	if err != nil {
		return err
	}
	if err := answer(ctx, w, o); err != nil {
		return err
	}
	a.unread(cmd.ErrOrStderr(), w)
	return nil
}

// one returns the one object that the arguments mean, and a World with all that is connected with
// it.
func (a *asking) one(ctx context.Context, args []string) (*insight.World, *resource.Info, error) {
	objects, err := a.objects(args)
	if err != nil {
		return nil, nil, err
	}
	if len(objects) != 1 {
		return nil, nil, fmt.Errorf("name one object: these are %d", len(objects))
	}
	w, err := a.read(ctx, scopeOf(objects))
	if err != nil {
		return nil, nil, err
	}
	o := objects[0]
	if _, ok := w.Graph.Find(whole(o).GetUID()); !ok {
		return nil, nil, fmt.Errorf("%s: it is not among the objects that were listed: it is gone, or its kind cannot be "+
			"listed", infoOf(o))
	}
	return w, o, nil
}
