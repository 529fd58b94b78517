package ask

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/weir-dev/weir/ask/insight"
	"github.com/weir-dev/weir/ask/page"
)

func uiCommand() *cobra.Command {
	a := newAsking()
	var port int
	cmd := &cobra.Command{
		Use:   "ui",
		Short: "Serve a page that answers all of this, and follows the cluster",
		Long: `Serve a page on this machine that shows what is in the cluster, what the delete of an object does,
why something does not go, and what is being deleted, and that follows the cluster: it lists and watches the
metadata of all kinds that you may list. It changes nothing, and loads nothing from anywhere else. Whoever
has the address that is printed may see what you may see; it is another one at each start, and works on this
machine only. Ctrl-C ends it.`,
		Example: `  kubectl weir ui
  kubectl weir ui -n shop       # this namespace only, for who may not list others
  kubectl weir ui --port 8000`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			options, err := a.page(ctx)
			if err != nil {
				return err
			}
			defer options.Follower.Close()
			p, err := page.Listen(options, port)
			if err != nil {
				return err
			}
			say(cmd.OutOrStdout(), "%s", p.URL())
			say(cmd.ErrOrStderr(), "The page shows %s with your rights, to whoever has this address. Ctrl-C ends it.",
				options.Cluster)
			return p.Serve(ctx)
		},
	}
	a.registerCluster(cmd)
	quiet(cmd)
	cmd.Flags().IntVar(&port, "port", 0, "the port of the page on this machine; 0: any that is free")
	return cmd
}

// page returns the options of the page for the selected cluster.
func (a *asking) page(ctx context.Context) (page.Options, error) {
	reader, err := a.reader()
	if err != nil {
		return page.Options{}, err
	}
	reader.Config = rest.CopyConfig(reader.Config)
	reader.Config.QPS = -1 // an answer takes few requests, and the page bounds how many are made at the same time
	client, err := dynamic.NewForConfig(reader.Config)
	if err != nil {
		return page.Options{}, err
	}
	// The namespace of the context is a default, and does not bound the page; that of a flag does.
	follower, err := reader.Follow(ctx, *a.flags.Namespace)
	if err != nil {
		return page.Options{}, unanswered(err)
	}
	running := &components{client: client}
	return page.Options{
		Cluster: a.cluster(reader.Config.Host), Flags: a.flagsOf(a.context()), Follower: follower, Policies: reader.Policies,
		Object: func(ctx context.Context, gvr schema.GroupVersionResource, namespace, name string) (
			*unstructured.Unstructured, error) {
			return client.Resource(gvr).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
		},
		Facts: func(ctx context.Context, w *insight.World, kind schema.GroupVersionResource,
			object *unstructured.Unstructured) insight.Facts {
			f := factsOf(ctx, client, running, w, kind, object)
			judge, err := reader.Policies(ctx, w)
			if err != nil {
				w.Missed("policies", false, err.Error())
			}
			askPolicies(ctx, judge, w, kind, object, &f)
			return f
		},
		Heard: func(ctx context.Context, w *insight.World, in string) {
			(&factReader{client: client, world: w}).heard(ctx, in)
		},
		Guarded: func(ctx context.Context, w *insight.World) ([]unstructured.Unstructured, []corev1.Event) {
			return (&factReader{client: client, world: w}).guarded(ctx)
		},
		Deleted: func(ctx context.Context, namespace string) ([]page.DeletedTree, error) {
			trees, err := deletedTrees(ctx, client, namespace, 0)
			if errors.Is(err, errNoArchive) {
				err = nil
			}
			return inWords(trees, time.Now()), err
		},
	}, nil
}

// cluster names the cluster for the user: by the context, or the host.
func (a *asking) cluster(host string) string {
	if name := a.context(); name != "" {
		return fmt.Sprintf("the context %s, %s", name, host)
	}
	return host
}

// context returns the name of the context; empty if there is none.
func (a *asking) context() string {
	if *a.flags.Context != "" {
		return *a.flags.Context
	}
	raw, err := a.flags.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return ""
	}
	return raw.CurrentContext
}
