package ask

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/dynamic"

	"github.com/weir-dev/weir/controller/insight"
	"github.com/weir-dev/weir/policies/v1alpha1"
)

var (
	podKind        = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	nodeKind       = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	claimKind      = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}
	volumeKind     = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumes"}
	namespaceKind  = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	eventKind      = schema.GroupVersionResource{Version: "v1", Resource: "events"}
	attachmentKind = schema.GroupVersionResource{Group: "storage.k8s.io", Version: "v1", Resource: "volumeattachments"}
	heldKind       = v1alpha1.GroupVersion.WithResource("heldcollections")
	apiServiceKind = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
)

// mostEvents bounds the Events that are read of a namespace.
const mostEvents = 1000

// facts reads what metadata does not tell about an object, and asks policies about it.
func (a *asking) facts(ctx context.Context, w *insight.World, o *resource.Info) insight.Facts {
	client, err := a.client()
	if err != nil {
		return insight.Facts{Object: whole(o)}
	}
	f := factsOf(ctx, client, &components{client: client}, w, o.Mapping.Resource.GroupResource(), whole(o))
	a.ask(ctx, w, o, &f)
	return f
}

// ask asks policies about an object: whether its delete is refused, or what becomes of its deletion. What they do not tell is left out.
func (a *asking) ask(ctx context.Context, w *insight.World, o *resource.Info, f *insight.Facts) {
	judge, err := a.policies(ctx, w)
	if err != nil || judge == nil {
		return
	}
	v, ok := w.Graph.Find(whole(o).GetUID())
	switch {
	case !ok:
	case v.Deleting:
		e := judge.Enforce(ctx)(v)
		f.Enforcement = &e
	default:
		if verdict, err := judge.Judge(ctx, whole(o), o.Mapping.Resource, metav1.DeletePropagationBackground); err == nil {
			f.Verdict = &verdict
		}
	}
}

// factsOf reads what metadata does not tell. What cannot be read is left out: nothing is said about it then.
func factsOf(ctx context.Context, client dynamic.Interface, running *components, w *insight.World, kind schema.GroupResource, object *unstructured.Unstructured) insight.Facts {
	wants := w.Wants(object.GetUID(), time.Now())
	f := insight.Facts{Object: object, Components: running.of(ctx, wants.Finalizers), Events: eventsIn(ctx, client, wants.Namespaces)}
	if object.GetDeletionTimestamp() != nil && slices.Contains(object.GetFinalizers(), v1alpha1.Finalizer) {
		if held, err := client.Resource(heldKind).Get(ctx, v1alpha1.HeldRequested+kind.String(), metav1.GetOptions{}); err == nil {
			f.Held = held
		}
	}
	switch kind {
	case claimKind.GroupResource():
		f.Pods = podsIn(ctx, client, object.GetNamespace())
	case volumeKind.GroupResource():
		if in, _, _ := unstructured.NestedString(object.Object, "spec", "claimRef", "namespace"); in != "" {
			f.Pods = podsIn(ctx, client, in)
		}
		f.Attachments = attachmentsOf(ctx, client, object.GetName())
	case podKind.GroupResource():
		if node, _, _ := unstructured.NestedString(f.Object.Object, "spec", "nodeName"); node != "" {
			_, err := client.Resource(nodeKind).Get(ctx, node, metav1.GetOptions{})
			if gone := apierrors.IsNotFound(err); gone || err == nil {
				f.NodeGone = &gone
			}
		}
	case namespaceKind.GroupResource():
		if services, err := client.Resource(apiServiceKind).List(ctx, metav1.ListOptions{}); err == nil {
			f.APIServices = unavailable(services.Items)
		}
	}
	return f
}

// podsIn are the pods of a namespace; none if they cannot be read.
func podsIn(ctx context.Context, client dynamic.Interface, namespace string) []unstructured.Unstructured {
	list, err := client.Resource(podKind).Namespace(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil
	}
	return list.Items
}

// attachmentsOf are the VolumeAttachments of a volume; none if they cannot be read.
func attachmentsOf(ctx context.Context, client dynamic.Interface, volume string) (out []unstructured.Unstructured) {
	list, err := client.Resource(attachmentKind).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil
	}
	for i := range list.Items {
		if of, _, _ := unstructured.NestedString(list.Items[i].Object, "spec", "source", "persistentVolumeName"); of == volume {
			out = append(out, list.Items[i])
		}
	}
	return out
}

// eventsIn are Weir's Events in some namespaces, as far as they can be read.
func eventsIn(ctx context.Context, client dynamic.Interface, namespaces []string) (out []corev1.Event) {
	for _, in := range namespaces {
		list, err := client.Resource(eventKind).Namespace(in).List(ctx, metav1.ListOptions{FieldSelector: "source=weir", Limit: mostEvents})
		if err != nil {
			continue
		}
		for i := range list.Items {
			var e corev1.Event
			if runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, &e) == nil {
				out = append(out, e)
			}
		}
	}
	return out
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
