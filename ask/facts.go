package ask

import (
	"context"
	"fmt"
	"slices"
	"time"

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
	podKind        = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	nodeKind       = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	claimKind      = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}
	volumeKind     = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumes"}
	namespaceKind  = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	eventKind      = schema.GroupVersionResource{Version: "v1", Resource: "events"}
	attachmentKind = schema.GroupVersionResource{Group: "storage.k8s.io", Version: "v1", Resource: "volumeattachments"}
	heldKind       = v1beta1.GroupVersion.WithResource("heldcollections")
	apiServiceKind = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
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
	f := factsOf(ctx, client, &components{client: client}, w, o.Mapping.Resource, whole(o))
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
		verdict := judge.Judge(ctx, object, kind,
			metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)})
		f.Verdict = &verdict
	}
}

// factsOf reads what metadata does not tell, and notes in the World what cannot be read.
func factsOf(
	ctx context.Context, client dynamic.Interface, running *components, w *insight.World,
	gvr schema.GroupVersionResource, object *unstructured.Unstructured,
) insight.Facts {
	wants := w.Wants(object.GetUID(), time.Now())
	r := &factReader{client: client, world: w}
	f := insight.Facts{Object: object, Events: r.events(ctx, wants.Namespaces)}
	if object.GetDeletionTimestamp() == nil {
		return f // the rest explains why a deletion does not end
	}
	if namespace := object.GetNamespace(); namespace != "" {
		f.NamespaceGone = r.gone(ctx, namespaceKind, namespace)
	}
	f.Components = running.of(ctx, w, wants.Finalizers)
	kind := gvr.GroupResource()
	if slices.Contains(object.GetFinalizers(), v1beta1.Finalizer) {
		f.Held = r.get(ctx, heldKind, v1beta1.HeldRequested+kind.String())
	}
	switch kind {
	case claimKind.GroupResource():
		f.Pods = r.list(ctx, podKind, object.GetNamespace())
	case volumeKind.GroupResource():
		if in, _, _ := unstructured.NestedString(object.Object, "spec", "claimRef", "namespace"); in != "" {
			f.Pods = r.list(ctx, podKind, in)
		}
		f.Attachments = attachmentsOf(r.list(ctx, attachmentKind, ""), object.GetName())
	case podKind.GroupResource():
		if node, _, _ := unstructured.NestedString(object.Object, "spec", "nodeName"); node != "" {
			f.NodeGone = r.gone(ctx, nodeKind, node)
		}
	case namespaceKind.GroupResource():
		f.APIServices = unavailable(r.list(ctx, apiServiceKind, ""))
	}
	return f
}

// attachmentsOf returns the VolumeAttachments of a volume.
func attachmentsOf(all []unstructured.Unstructured, volume string) (out []unstructured.Unstructured) {
	for i := range all {
		if of, _, _ := unstructured.NestedString(all[i].Object, "spec", "source", "persistentVolumeName"); of == volume {
			out = append(out, all[i])
		}
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

// unavailable returns the APIServices that are not available, and why.
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
