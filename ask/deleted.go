package ask

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/ptr"

	"github.com/weir-dev/weir/archive"
	"github.com/weir-dev/weir/archive/restore"
	"github.com/weir-dev/weir/ask/page"
	"github.com/weir-dev/weir/controller/words"
	"github.com/weir-dev/weir/policies/v1beta1"
)

// weirNamespace is the default namespace of the chart.
const weirNamespace = "weir-system"

// archived is what the commands about deleted trees share.
type archived struct {
	*asking
	weir string // the namespace of Weir
}

func (a *archived) registerArchive(cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.weir, "weir-namespace", weirNamespace, "the namespace of Weir, where the archive's key is")
}

func (a *archived) store() (*archive.Store, error) {
	client, err := a.client()
	return archive.NewStore(client, a.weir), err
}

var errNoArchive = errors.New("the cluster keeps nothing of what is deleted: install Weir, and " +
	"set archive in a DeletionPolicy; what is deleted after that can be restored")

// tree returns a tree of the catalogue.
func (a *archived) tree(ctx context.Context, s *archive.Store, name string) (*v1beta1.DeletedTree, error) {
	tree, err := s.Get(ctx, name)
	if !apierrors.IsNotFound(err) {
		return tree, unanswered(err)
	}
	if _, err := s.List(ctx); apierrors.IsNotFound(err) {
		return nil, errNoArchive
	}
	return nil, fmt.Errorf("there is no DeletedTree %q: it has expired, was purged, or never was; kubectl weir "+
		"deleted lists all", name)
}

// deletedTree is a tree as it is printed.
type deletedTree struct {
	Tree    string                    `json:"tree"`
	Root    v1beta1.DeletedRoot       `json:"root"`
	Deleted time.Time                 `json:"deletionTime"`
	Expires time.Time                 `json:"expirationTime"`
	Durable bool                      `json:"durable"`
	Status  v1beta1.DeletedTreeStatus `json:"recorded"`
}

func deletedCommand() *cobra.Command {
	a := &archived{asking: newAsking()}
	var since time.Duration
	cmd := &cobra.Command{
		Use:   "deleted",
		Short: "Show what was deleted and can be restored",
		Long: `Show the trees of deleted objects that Weir has recorded, the newest first: the object whose delete
was asked for, how many objects were deleted with it, and until when they are kept. A DeletionPolicy with
archive says what is recorded.`,
		Example: `  kubectl weir deleted
  kubectl weir deleted -n shop --since 2h`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := a.client()
			if err != nil {
				return err
			}
			trees, err := deletedTrees(cmd.Context(), client, *a.flags.Namespace, since)
			if err != nil {
				return unanswered(err)
			}
			return a.printDeleted(cmd.OutOrStdout(), trees)
		},
	}
	a.register(cmd, "json", "yaml", "name")
	cmd.Flags().Lookup("namespace").Usage = "only what was in this namespace; default: all"
	cmd.Flags().DurationVar(&since, "since", 0, "only what was deleted within this time; 0: all")
	return cmd
}

// deletedTrees returns the trees of the cluster, filtered as chosen does.
func deletedTrees(ctx context.Context, client dynamic.Interface, namespace string, since time.Duration) (
	[]deletedTree, error) {
	trees, err := archive.NewStore(client, "").List(ctx)
	if apierrors.IsNotFound(err) {
		return nil, errNoArchive
	}
	return chosen(trees, namespace, since, time.Now()), err
}

// chosen returns the trees whose root is in a namespace, or is it, and that are no older than
// since; the newest first.
func chosen(trees []v1beta1.DeletedTree, namespace string, since time.Duration, now time.Time) []deletedTree {
	list := []deletedTree{}
	for i := range trees {
		t := &trees[i]
		root, deleted := t.Spec.Root, ptr.Deref(t.Spec.DeletionTime, metav1.Time{}).Time
		in := root.Namespace
		if root.Group == "" && root.Resource == "namespaces" {
			in = root.Name
		}
		if namespace != "" && in != namespace || since > 0 && now.Sub(deleted) > since {
			continue
		}
		list = append(list, deletedTree{t.Name, root, deleted, ptr.Deref(t.Spec.ExpirationTime, metav1.Time{}).Time,
			archive.Durable(t), t.Status})
	}
	slices.SortFunc(list, func(a, b deletedTree) int { return b.Deleted.Compare(a.Deleted) })
	return list
}

func (a *archived) printDeleted(out io.Writer, list []deletedTree) error {
	if done, err := a.print(out, "DeletedTrees", map[string]any{"items": list}); done {
		return err
	}
	if a.output == "name" {
		for _, t := range list {
			say(out, "%s", t.Tree)
		}
		return nil
	}
	if len(list) == 0 {
		say(out, "Nothing that was deleted is kept. A DeletionPolicy with archive says what is.")
		return nil
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	say(table, "TREE\tOBJECT\tRECORDED\tDELETED\tEXPIRES")
	for _, t := range inWords(list, time.Now()) {
		say(table, "%s\t%s\t%s\t%s ago\tin %s", t.Tree, words.Printable(t.Object), t.Recorded, t.Deleted, t.Expires)
	}
	return table.Flush()
}

// inWords returns trees as text.
func inWords(list []deletedTree, now time.Time) []page.DeletedTree {
	out := make([]page.DeletedTree, len(list))
	for i, t := range list {
		ref := restore.Ref{Kind: schema.GroupResource{Group: t.Root.Group, Resource: t.Root.Resource},
			Namespace: t.Root.Namespace, Name: t.Root.Name}
		recorded := words.Count(t.Status.Objects, "object", "objects")
		if !t.Durable {
			recorded = "not yet all"
		} else if t.Status.MissedObjects > 0 {
			recorded += fmt.Sprintf(", %d missed", t.Status.MissedObjects)
		}
		out[i] = page.DeletedTree{Tree: t.Tree, Object: ref.String(), Recorded: recorded,
			Deleted: duration.HumanDuration(now.Sub(t.Deleted)),
			Expires: duration.HumanDuration(t.Expires.Sub(now))}
	}
	return out
}

func purgeCommand() *cobra.Command {
	a := &archived{asking: newAsking()}
	cmd := &cobra.Command{
		Use:   "purge TREE",
		Short: "Delete for good what is kept of deleted objects",
		Long: `Delete for good what is kept of deleted objects. The key of the tree goes with it, so nobody reads
the rest any more. Backups of etcd that were made before have both.`,
		Example: `  kubectl weir purge web-5kq2x7wd`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			store, err := a.store()
			if err != nil {
				return err
			}
			tree, err := a.tree(cmd.Context(), store, args[0])
			if err != nil {
				return err
			}
			if err := store.Purge(cmd.Context(), tree); err != nil {
				return unanswered(err)
			}
			say(cmd.OutOrStdout(), "purged %s: %s can no longer be restored", tree.Name,
				words.Count(tree.Status.Objects, "object", "objects"))
			return nil
		},
	}
	a.registerCluster(cmd)
	quiet(cmd)
	return cmd
}
