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

func deletedCommand() *cobra.Command {
	a := &archived{asking: newAsking()}
	var since time.Duration
	cmd := &cobra.Command{
		Use:   "deleted",
		Short: "Show what was deleted and can be restored",
		Long: `Show the trees of deleted objects that Weir has recorded, the newest first: the object whose
delete was asked for, how many objects were deleted with it, and until when they are kept. A
DeletionPolicy with archive says what is recorded.`,
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

// deletedTrees returns the trees of the cluster whose root is in a namespace, or is it, and that
// are no older than since; the newest first. No namespace and no time stand for all.
func deletedTrees(ctx context.Context, client dynamic.Interface, namespace string, since time.Duration) (
	[]v1beta1.DeletedTree, error) {
	trees, err := archive.NewStore(client, "").List(ctx)
	if apierrors.IsNotFound(err) {
		return nil, errNoArchive
	}
	now := time.Now()
	trees = slices.DeleteFunc(trees, func(t v1beta1.DeletedTree) bool {
		in := t.Spec.Root.Namespace
		if t.Spec.Root.Group == "" && t.Spec.Root.Resource == "namespaces" {
			in = t.Spec.Root.Name
		}
		return namespace != "" && in != namespace || since > 0 && now.Sub(deletionOf(&t)) > since
	})
	slices.SortFunc(trees, func(a, b v1beta1.DeletedTree) int { return deletionOf(&b).Compare(deletionOf(&a)) })
	return trees, err
}

func deletionOf(t *v1beta1.DeletedTree) time.Time {
	return ptr.Deref(t.Spec.DeletionTime, metav1.Time{}).Time
}

func (a *archived) printDeleted(out io.Writer, trees []v1beta1.DeletedTree) error {
	if done, err := a.print(out, "DeletedTrees", map[string]any{"items": trees}); done {
		return err
	}
	if a.output == "name" {
		for i := range trees {
			say(out, "%s", trees[i].Name)
		}
		return nil
	}
	if len(trees) == 0 {
		say(out, "Nothing that was deleted is kept. A DeletionPolicy with archive says what is.")
		return nil
	}
	table, now := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0), time.Now()
	say(table, "TREE\tOBJECT\tRECORDED\tDELETED\tEXPIRES")
	for i := range trees {
		t := &trees[i]
		root, recorded := t.Spec.Root, words.Count(t.Status.Objects, "object", "objects")
		if !archive.Durable(t) {
			recorded = "not yet all"
		} else if t.Status.MissedObjects > 0 {
			recorded += fmt.Sprintf(", %d missed", t.Status.MissedObjects)
		}
		ref := restore.Ref{Kind: schema.GroupResource{Group: root.Group, Resource: root.Resource},
			Namespace: root.Namespace, Name: root.Name}
		expires := ptr.Deref(t.Spec.ExpirationTime, metav1.Time{}).Sub(now)
		say(table, "%s\t%s\t%s\t%s ago\tin %s", t.Name, words.Printable(ref.String()), recorded,
			duration.HumanDuration(now.Sub(deletionOf(t))), duration.HumanDuration(expires))
	}
	return table.Flush()
}

func purgeCommand() *cobra.Command {
	a := &archived{asking: newAsking()}
	cmd := &cobra.Command{
		Use:   "purge TREE",
		Short: "Delete for good what is kept of deleted objects",
		Long: `Delete for good what is kept of deleted objects. The key of the tree goes with it, so nobody
reads the rest any more. Backups of etcd that were made before have both.`,
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
	return cmd
}
