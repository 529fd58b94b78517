package ask

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/dynamic"

	"github.com/weir-dev/weir/controller/insight"
)

func whyCommand() *cobra.Command {
	a := newAsking()
	var try bool
	outputs := []string{"json", "yaml"}
	cmd := &cobra.Command{
		Use:   "why (TYPE NAME | TYPE/NAME)",
		Short: "Say why an object is there, why it does not go, and who has to act",
		Long: `Say why an object is there, or still there: what it waits for, who has to act, what that rests on, and which command
shows more. Evidence is told as what was found; it proves no more than it says. Nothing has to be installed in the cluster.

With --try, the API server is also asked to try the requests that have to be accepted before the object can go, without effect
(dry run): the delete of what has to go first, and a patch that takes finalizers off. That finds admission and conversion
webhooks and policies that refuse, or do not answer. It takes the right to delete or patch these objects, and changes nothing.
With --as the requests are tried as another user, such as the garbage collector.`,
		Example: `  kubectl weir why namespace shop
  kubectl weir why pvc/data-0
  kubectl weir why deployment web --try
  kubectl weir why deployment web --try --as=system:serviceaccount:kube-system:generic-garbage-collector`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.about(cmd, args, outputs, func(ctx context.Context, w *insight.World, o *resource.Info) error {
				answer, _ := w.Why(whole(o).GetUID(), a.facts(ctx, o), time.Now()) // it was found
				if try {
					answer.Take(a.try(ctx, w, whole(o).GetUID()))
				}
				if done, err := a.print(cmd.OutOrStdout(), "Answer", map[string]any{
					"object": answer.Object, "deleting": answer.Deleting, "state": answer.State, "causes": answer.Causes, "tried": answer.Tried, "unread": w.Unread(),
				}); done {
					return err
				}
				return answer.Draw(cmd.OutOrStdout())
			})
		},
	}
	a.register(cmd, outputs...)
	a.registerNames(cmd)
	cmd.Flags().BoolVar(&try, "try", false, "also try, without effect, the requests that have to be accepted before the object can go")
	return cmd
}

var (
	podKind        = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	nodeKind       = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	apiServiceKind = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
)

// facts reads what metadata does not tell about an object.
func (a *asking) facts(ctx context.Context, o *resource.Info) insight.Facts {
	client, err := a.client()
	if err != nil {
		return insight.Facts{Object: whole(o)}
	}
	return factsOf(ctx, client, &components{client: client}, o.Mapping.Resource.GroupResource(), whole(o))
}

// factsOf reads what metadata does not tell. What cannot be read is left out: nothing is said about it then.
func factsOf(ctx context.Context, client dynamic.Interface, running *components, kind schema.GroupResource, object *unstructured.Unstructured) insight.Facts {
	f := insight.Facts{Object: object, Components: running.of(ctx, object)}
	switch kind {
	case schema.GroupResource{Resource: "persistentvolumeclaims"}:
		if pods, err := client.Resource(podKind).Namespace(object.GetNamespace()).List(ctx, metav1.ListOptions{}); err == nil {
			f.Pods = pods.Items
		}
	case podKind.GroupResource():
		if node, _, _ := unstructured.NestedString(f.Object.Object, "spec", "nodeName"); node != "" {
			_, err := client.Resource(nodeKind).Get(ctx, node, metav1.GetOptions{})
			if gone := apierrors.IsNotFound(err); gone || err == nil {
				f.NodeGone = &gone
			}
		}
	case schema.GroupResource{Resource: "namespaces"}:
		if services, err := client.Resource(apiServiceKind).List(ctx, metav1.ListOptions{}); err == nil {
			f.APIServices = unavailable(services.Items)
		}
	}
	return f
}

func (a *asking) client() (*dynamic.DynamicClient, error) {
	config, err := a.flags.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	return dynamic.NewForConfig(config)
}

// unavailable are the APIServices that are not available, and why.
func unavailable(services []unstructured.Unstructured) map[string]string {
	out := map[string]string{}
	for i := range services {
		conditions, _, _ := unstructured.NestedSlice(services[i].Object, "status", "conditions")
		for _, one := range conditions {
			c, _ := one.(map[string]any)
			if c["type"] == "Available" && c["status"] != "True" {
				out[services[i].GetName()] = fmt.Sprint(c["message"])
			}
		}
	}
	return out
}
