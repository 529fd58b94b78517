package ask

import (
	"context"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/weir-dev/weir/ask/insight"
	"github.com/weir-dev/weir/ask/snapshot"
	"github.com/weir-dev/weir/policies/v1beta1"
)

var (
	podKind       = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	nodeKind      = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	claimKind     = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}
	volumeKind    = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumes"}
	namespaceKind = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	eventKind     = schema.GroupVersionResource{Version: "v1", Resource: "events"}
	heldKind      = v1beta1.GroupVersion.WithResource("heldcollections")
)

// facts reads what metadata does not tell about an object, and asks policies about it.
func (a *asking) facts(ctx context.Context, w *insight.World, o *resource.Info) (insight.Facts, error) {
	client, err := a.client()
	if err != nil {
		return insight.Facts{}, err
	}
	judge, err := a.policies(ctx, w)
	if err != nil {
		return insight.Facts{}, err
	}
	f := factsOf(ctx, client, w, o.Mapping.Resource, whole(o))
	askPolicies(ctx, judge, w, o.Mapping.Resource, whole(o), &f)
	return f, nil
}

// askPolicies adds what policies say about an object: whether its delete is refused, or how its
// deletion goes on. judge may be nil.
func askPolicies(
	ctx context.Context, judge *snapshot.Policies, w *insight.World,
	kind schema.GroupVersionResource, object *unstructured.Unstructured, f *insight.Facts,
) {
	v, ok := w.Graph.Find(object.GetUID())
	switch {
	case judge == nil || !ok:
	case v.Deleting:
		e := judge.Enforce(ctx)(v)
		f.Enforcement = &e
	default:
		verdict := judge.Judge(ctx, object, kind, metav1.DeletePropagationBackground)
		f.Verdict = &verdict
	}
}

// factsOf reads what metadata does not tell, and notes in the World what cannot be read.
func factsOf(
	ctx context.Context, client dynamic.Interface, w *insight.World,
	gvr schema.GroupVersionResource, object *unstructured.Unstructured,
) insight.Facts {
	wants := w.Wants(object.GetUID(), time.Now())
	r := &factReader{client: client, world: w}
	f := insight.Facts{Object: object, Events: r.events(ctx, wants.Namespaces...)}
	if object.GetDeletionTimestamp() == nil {
		return f // the rest explains why a deletion does not end
	}
	if namespace := object.GetNamespace(); namespace != "" {
		f.NamespaceGone = r.gone(ctx, namespaceKind, namespace)
	}
	if len(wants.Finalizers) > 0 {
		f.Components = r.components(ctx)
	}
	kind := gvr.GroupResource()
	if slices.Contains(object.GetFinalizers(), v1beta1.Finalizer) {
		f.Held = r.get(ctx, heldKind, v1beta1.HeldRequested+kind.String())
	}
	switch kind {
	case claimKind.GroupResource():
		f.Pods = r.list(ctx, podKind, object.GetNamespace())
	case podKind.GroupResource():
		if node, _, _ := unstructured.NestedString(object.Object, "spec", "nodeName"); node != "" {
			f.NodeGone = r.gone(ctx, nodeKind, node)
		}
	}
	return f
}

// mostWorkloads bounds the workloads of a kind that are read to tell whether a component runs.
const mostWorkloads = 500

// components reads what tells whether the components run that have to remove finalizers.
func (r *factReader) components(ctx context.Context) *insight.Components {
	out := &insight.Components{Complete: true}
	for _, resource := range []string{"deployments", "statefulsets", "daemonsets"} {
		kind := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: resource}
		list, err := r.client.Resource(kind).List(ctx, metav1.ListOptions{Limit: mostWorkloads})
		if err != nil {
			out.Complete = false
			r.world.Missed("workloads of all namespaces (which tell whether a component runs)",
				apierrors.IsForbidden(err), snapshot.ReasonOf(err))
			continue
		}
		out.Complete = out.Complete && list.GetContinue() == ""
		out.Workloads = append(out.Workloads, list.Items...)
	}
	return out
}

// client returns a client without a rate limit of its own.
func (a *asking) client() (*dynamic.DynamicClient, error) {
	config, err := a.flags.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.QPS = -1
	return dynamic.NewForConfig(config)
}
