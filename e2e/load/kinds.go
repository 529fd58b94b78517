package load

import (
	"context"
	"fmt"
	"maps"
	"sync/atomic"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// template is a kind, and the least that the API server takes for an object of it, beside its
// metadata.
type template struct {
	Kind
	body map[string]any
}

// templates are twenty kinds. Weir sees the metadata of objects alone, so what they are matters to
// the API server only, where a custom resource takes several times what a built-in object does;
// hence five of them, and fifteen built-in kinds of which nothing else makes something: no pods (a
// scheduler), no Services (addresses), no PersistentVolumeClaims (a finalizer), no Leases.
var templates = func() []template {
	type m = map[string]any
	pod := m{"metadata": m{"labels": m{"app": "scale"}}, "spec": m{"containers": []any{m{"name": "c", "image": "none"}}}}
	selected := m{"spec": m{"replicas": int64(0), "selector": m{"matchLabels": m{"app": "scale"}}, "template": pod}}
	backend := m{"service": m{"name": "none", "port": m{"number": int64(80)}}}
	scaled := m{"maxReplicas": int64(1), "scaleTargetRef": m{"apiVersion": "apps/v1", "kind": "Deployment",
		"name": "none"}}
	kind := func(group, version, kind, resource string, body m) template {
		return template{Kind{schema.GroupVersionKind{Group: group, Version: version, Kind: kind}, resource}, body}
	}
	all := []template{
		{ConfigMap, nil},
		{serviceAccountKind, nil},
		kind("", "v1", "Secret", "secrets", nil),
		kind("", "v1", "PodTemplate", "podtemplates", m{"template": pod}),
		kind("", "v1", "LimitRange", "limitranges", m{"spec": m{"limits": []any{}}}),
		kind("apps", "v1", "ControllerRevision", "controllerrevisions", m{"revision": int64(1), "data": m{}}),
		kind("apps", "v1", "ReplicaSet", "replicasets", selected),
		kind("apps", "v1", "Deployment", "deployments", selected),
		kind("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies", m{"spec": m{"podSelector": m{}}}),
		kind("networking.k8s.io", "v1", "Ingress", "ingresses", m{"spec": m{"defaultBackend": backend}}),
		kind("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", m{"spec": m{"maxUnavailable": int64(1)}}),
		kind("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", m{"spec": scaled}),
		kind("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices", m{"addressType": "IPv4", "endpoints": []any{}}),
		kind("storage.k8s.io", "v1", "CSIStorageCapacity", "csistoragecapacities", m{"storageClassName": "none"}),
		kind("rbac.authorization.k8s.io", "v1", "Role", "roles", m{"rules": []any{}}),
	}
	for i := range customKinds {
		all = append(all, kind("scale.weir.dev", "v1", fmt.Sprintf("Part%d", i), fmt.Sprintf("part%ds", i), nil))
	}
	return all
}()

const (
	customKinds = 5
	// filledNamespaces is how many namespaces Fill makes.
	filledNamespaces = 50
	// fanOut is how many dependents an object in the middle of a tree has.
	fanOut = 49
	// fillPage is large: to read from etcd in small pages would take longer than what it is
	// compared with.
	fillPage = 10000
)

// Fill makes n objects of twenty kinds in fifty namespaces, in each a tree of two levels, or as many
// as it makes until a time. It returns the objects in the middle of the trees.
func Fill(ctx context.Context, cfg *rest.Config, n int, until time.Time) (middles []Content, made int, err error) {
	if n < 2*filledNamespaces {
		return nil, 0, fmt.Errorf("fill the cluster: %d objects are too few for %d namespaces", n, filledNamespaces)
	}
	for _, t := range templates[len(templates)-customKinds:] {
		if err := Define(ctx, cfg, Definition(t.Kind, apiextensionsv1.NamespaceScoped, t.Version)); err != nil {
			return nil, 0, err
		}
	}
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, 0, fmt.Errorf("fill the cluster: %w", err)
	}
	roots := make([]Content, filledNamespaces)
	err = Each(ctx, len(roots), func(ctx context.Context, i int) error {
		namespace, err := newNamespace(ctx, client, "scale")
		if err == nil {
			roots[i], err = fillWith(ctx, client, "root", i, Content{Namespace: namespace.Name})
		}
		return err
	})
	var count atomic.Int64
	level := func(name string, n int, owners []Content) []Content {
		below := make([]Content, n)
		if err == nil {
			err = Each(ctx, n, func(ctx context.Context, i int) (err error) {
				if time.Now().Before(until) {
					below[i], err = fillWith(ctx, client, fmt.Sprint(name, i), i, owners[i%len(owners)])
					count.Add(1)
				}
				return err
			})
		}
		return below
	}
	middles = level("middle", max(1, n/(fanOut+1)), roots)
	level("leaf", n-len(middles)-len(roots), middles)
	made = int(count.Load()) + len(roots)
	if err == nil && made <= len(roots)+len(middles) {
		err = fmt.Errorf("the time was up after %d objects", made)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("fill the cluster: %w", err)
	}
	return middles, made, nil
}

// fillWith makes the i-th object below an owner, if it has a name, and in its namespace.
func fillWith(ctx context.Context, client dynamic.Interface, name string, i int, owner Content) (Content, error) {
	t := templates[i%len(templates)]
	o := &unstructured.Unstructured{Object: maps.Clone(t.body)}
	if o.Object == nil {
		o.Object = map[string]any{}
	}
	o.SetName(name)
	if owner.Name != "" {
		o.SetOwnerReferences([]metav1.OwnerReference{reference(owner.Kind, owner.Object)})
	}
	object, err := made(ctx, client.Resource(t.GVR()).Namespace(owner.Namespace), t.Kind, o)
	return Content{Kind: t.Kind, Namespace: owner.Namespace, Object: object}, err
}

// ListFilled lists the metadata of all kinds that Fill makes, each in pages, side by side: what a
// start costs at the least.
func ListFilled(ctx context.Context, cfg *rest.Config) error {
	client, err := metadata.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("list all kinds: %w", err)
	}
	return Each(ctx, len(templates), func(ctx context.Context, k int) error {
		for options := (metav1.ListOptions{Limit: fillPage}); ; {
			list, err := client.Resource(templates[k].GVR()).List(ctx, options)
			if err != nil {
				return fmt.Errorf("list all kinds: %w", err)
			}
			if options.Continue = list.Continue; options.Continue == "" {
				return nil
			}
		}
	})
}

// AskDeletes has objects deleted for a trial, n times one after the other.
func AskDeletes(ctx context.Context, cfg *rest.Config, objects []Content, n int) (a Answers, err error) {
	cfg = rest.CopyConfig(cfg)
	cfg.WarningHandler = rest.NoWarnings{} // the webhook says of each what would go
	client, err := metadata.NewForConfig(cfg)
	for k := 0; k < n && err == nil; k++ {
		o, began := objects[k%len(objects)], time.Now()
		err = client.Resource(o.Kind.GVR()).Namespace(o.Namespace).Delete(ctx, o.Name,
			metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
		a.deletes = append(a.deletes, latency{began, time.Since(began)})
	}
	if err != nil {
		return a, fmt.Errorf("delete for a trial: %w", err)
	}
	return a, nil
}
