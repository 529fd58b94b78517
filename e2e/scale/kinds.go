package scale

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/e2e/load"
)

// A Template is a kind, and the least that the API server takes for an object of it, beside its
// metadata.
type Template struct {
	load.Kind
	Body map[string]any
}

// customKinds is how many of the kinds are custom resources.
const customKinds = 5

// Templates are the twenty kinds of a population. Weir sees the metadata of objects alone, so what
// they are matters to the API server only, which keeps all of them in its watch caches, on the same
// machine. A custom resource takes several times what a built-in object takes there, since it is
// kept as maps; hence five of them, and fifteen built-in kinds of which nothing else makes
// something: no pods (a scheduler), no Services (addresses), no PersistentVolumeClaims (a
// finalizer). Leases are left out, since they are no content of a namespace to Weir.
func Templates() []Template {
	pod := map[string]any{"metadata": map[string]any{"labels": labels}, "spec": map[string]any{"containers": []any{map[string]any{"name": "c", "image": "none"}}}}
	selected := map[string]any{"replicas": 0, "selector": map[string]any{"matchLabels": labels}, "template": pod}
	spec := func(s map[string]any) map[string]any { return map[string]any{"spec": s} }
	all := []Template{
		{load.ConfigMap, nil},
		builtin("", "v1", "Secret", "secrets", nil),
		builtin("", "v1", "ServiceAccount", "serviceaccounts", nil),
		builtin("", "v1", "PodTemplate", "podtemplates", map[string]any{"template": pod}),
		builtin("", "v1", "LimitRange", "limitranges", spec(map[string]any{"limits": []any{}})),
		builtin("apps", "v1", "ControllerRevision", "controllerrevisions", map[string]any{"revision": 1, "data": map[string]any{}}),
		builtin("apps", "v1", "ReplicaSet", "replicasets", spec(selected)),
		builtin("apps", "v1", "Deployment", "deployments", spec(selected)),
		builtin("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies", spec(map[string]any{"podSelector": map[string]any{}})),
		builtin("networking.k8s.io", "v1", "Ingress", "ingresses", spec(map[string]any{"defaultBackend": map[string]any{
			"service": map[string]any{"name": "none", "port": map[string]any{"number": 80}}}})),
		builtin("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", spec(map[string]any{"maxUnavailable": 1})),
		builtin("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", spec(map[string]any{
			"maxReplicas": 1, "scaleTargetRef": map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "none"}})),
		builtin("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices", map[string]any{"addressType": "IPv4", "endpoints": []any{}}),
		builtin("storage.k8s.io", "v1", "CSIStorageCapacity", "csistoragecapacities", map[string]any{"storageClassName": "none"}),
		builtin("rbac.authorization.k8s.io", "v1", "Role", "roles", map[string]any{"rules": []any{}}),
	}
	for i := range customKinds {
		all = append(all, builtin("scale.weir.dev", "v1", fmt.Sprintf("Part%d", i), fmt.Sprintf("part%ds", i), nil))
	}
	return all
}

// Custom are those of the kinds that have to be defined.
func Custom() []load.Kind {
	var custom []load.Kind
	for _, t := range Templates()[len(Templates())-customKinds:] {
		custom = append(custom, t.Kind)
	}
	return custom
}

var labels = map[string]any{"app": "scale"}

func builtin(group, version, kind, resource string, body map[string]any) Template {
	return Template{load.Kind{GroupVersionKind: schema.GroupVersionKind{Group: group, Version: version, Kind: kind}, Resource: resource}, body}
}
