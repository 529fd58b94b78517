package main

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

	"github.com/weir-dev/weir/e2e/load"
)

// template is a kind, and the least that the API server takes for an object of it, beside its
// metadata.
type template struct {
	load.Kind
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
	scales := m{"maxReplicas": int64(1), "scaleTargetRef": m{"apiVersion": "apps/v1", "kind": "Deployment", "name": "none"}}
	kind := func(group, version, kind, resource string, body m) template {
		return template{load.Kind{GroupVersionKind: schema.GroupVersionKind{Group: group, Version: version, Kind: kind}, Resource: resource}, body}
	}
	all := []template{
		{load.ConfigMap, nil},
		{load.ServiceAccount, nil},
		kind("", "v1", "Secret", "secrets", nil),
		kind("", "v1", "PodTemplate", "podtemplates", m{"template": pod}),
		kind("", "v1", "LimitRange", "limitranges", m{"spec": m{"limits": []any{}}}),
		kind("apps", "v1", "ControllerRevision", "controllerrevisions", m{"revision": int64(1), "data": m{}}),
		kind("apps", "v1", "ReplicaSet", "replicasets", selected),
		kind("apps", "v1", "Deployment", "deployments", selected),
		kind("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies", m{"spec": m{"podSelector": m{}}}),
		kind("networking.k8s.io", "v1", "Ingress", "ingresses", m{"spec": m{"defaultBackend": backend}}),
		kind("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", m{"spec": m{"maxUnavailable": int64(1)}}),
		kind("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", m{"spec": scales}),
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
	customKinds      = 5
	filledNamespaces = 50
	// fanOut is how many dependents an object in the middle of a tree has.
	fanOut = 49
	// listPage is large: to read from etcd in small pages would take longer than what it is compared
	// with.
	listPage = 10000
)

// fillWithKinds makes n objects of twenty kinds in fifty namespaces, in each a tree of two levels, or
// as many as it makes until a time. It returns the objects in the middle of the trees.
func (b *bench) fillWithKinds(ctx context.Context, n int, until time.Time) (middles []content, made int, err error) {
	if n < 2*filledNamespaces {
		return nil, 0, fmt.Errorf("%d objects are too few for %d namespaces", n, filledNamespaces)
	}
	for _, t := range templates[len(templates)-customKinds:] {
		if err := load.Define(ctx, b.Config, load.Definition(t.Kind, apiextensionsv1.NamespaceScoped, t.Version)); err != nil {
			return nil, 0, err
		}
	}
	roots := make([]content, filledNamespaces)
	err = load.Each(ctx, len(roots), func(ctx context.Context, i int) error {
		namespace, err := load.NewNamespace(ctx, b.admin.dynamic)
		if err == nil {
			roots[i], err = b.makeBelow(ctx, "root", i, content{namespace: namespace.Name})
		}
		return err
	})
	var count atomic.Int64
	level := func(name string, n int, owners []content) []content {
		below := make([]content, n)
		if err == nil {
			err = load.Each(ctx, n, func(ctx context.Context, i int) (err error) {
				if time.Now().Before(until) {
					below[i], err = b.makeBelow(ctx, fmt.Sprint(name, i), i, owners[i%len(owners)])
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
	return middles, made, err
}

// makeBelow makes the i-th object below an owner, if it has a name, and in its namespace.
func (b *bench) makeBelow(ctx context.Context, name string, i int, owner content) (content, error) {
	t := templates[i%len(templates)]
	o := &unstructured.Unstructured{Object: maps.Clone(t.body)}
	if o.Object == nil {
		o.Object = map[string]any{}
	}
	o.SetName(name)
	if owner.Name != "" {
		o.SetOwnerReferences([]metav1.OwnerReference{load.Reference(owner.kind, owner.Object)})
	}
	object, err := load.Made(ctx, b.admin.dynamic.Resource(t.GVR()).Namespace(owner.namespace), t.Kind, o)
	return content{kind: t.Kind, namespace: owner.namespace, Object: object}, err
}

// listKinds lists the metadata of all these kinds, each in pages, side by side: what a start costs
// at the least.
func (b *bench) listKinds(ctx context.Context) error {
	return load.Each(ctx, len(templates), func(ctx context.Context, k int) error {
		for options := (metav1.ListOptions{Limit: listPage}); ; {
			list, err := b.self.metadata.Resource(templates[k].GVR()).List(ctx, options)
			if err != nil {
				return err
			}
			if options.Continue = list.Continue; options.Continue == "" {
				return nil
			}
		}
	})
}
