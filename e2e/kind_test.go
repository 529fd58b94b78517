package e2e

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// kind is a resource, and what an object of it needs besides its metadata.
type kind struct {
	schema.GroupVersionKind
	resource string
	cluster  bool
	body     string // YAML, %[1]s is the name
}

func (k kind) gvr() schema.GroupVersionResource { return k.GroupVersion().WithResource(k.resource) }

// usual are the kinds that every cluster has.
var usual = map[string]kind{
	"cm":    {GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, resource: "configmaps"},
	"sec":   {GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, resource: "secrets"},
	"lease": {GroupVersionKind: schema.GroupVersionKind{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"}, resource: "leases"},
	// No scheduler works, so that it goes at once when it is deleted.
	"po": {GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, resource: "pods",
		body: `spec: {schedulerName: nobody, containers: [{name: c, image: c}]}`},
	// Wants no pods, and no pod of a test is like its template: its controller
	// leaves them alone.
	"rc": {GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "ReplicationController"}, resource: "replicationcontrollers",
		body: `spec: {replicas: 0, selector: {of: %[1]s}, template: {metadata: {labels: {of: %[1]s}}, spec: {containers: [{name: c, image: c}]}}}`},
	"deploy": {GroupVersionKind: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, resource: "deployments",
		body: `spec: {replicas: 0, selector: {matchLabels: {of: %[1]s}}, template: {metadata: {labels: {of: %[1]s}}, spec: {containers: [{name: c, image: c}]}}}`},
	"rs": {GroupVersionKind: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "ReplicaSet"}, resource: "replicasets",
		body: `spec: {replicas: 0, selector: {matchLabels: {of: %[1]s}}, template: {metadata: {labels: {of: %[1]s}}, spec: {containers: [{name: c, image: c}]}}}`},
	// Its pods run until they are deleted, on a node that only says so.
	"web": {GroupVersionKind: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, resource: "deployments",
		body: `spec: {replicas: 2, selector: {matchLabels: {of: %[1]s}}, template: {metadata: {labels: {of: %[1]s}}, spec: {containers: [{name: c, image: c}]}}}`},
	"job": {GroupVersionKind: schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}, resource: "jobs",
		body: `spec: {suspend: true, template: {spec: {restartPolicy: Never, containers: [{name: c, image: c}]}}}`},
	"ns": {GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, resource: "namespaces", cluster: true},
	"pv": {GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "PersistentVolume"}, resource: "persistentvolumes", cluster: true,
		body: `spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], hostPath: {path: /nowhere}}`},
	"cr": {GroupVersionKind: schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}, resource: "clusterroles", cluster: true},
	"pvc": {GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "PersistentVolumeClaim"}, resource: "persistentvolumeclaims",
		body: `spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}`},
	// Uses the claim "data", on a node that is not there.
	"user": {GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, resource: "pods",
		body: `spec: {nodeName: no-such-node, containers: [{name: c, image: c}], volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]}`},
	"hpa": {GroupVersionKind: schema.GroupVersionKind{Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler"}, resource: "horizontalpodautoscalers",
		body: `spec: {maxReplicas: 1, scaleTargetRef: {kind: Deployment, name: none}}`},
}
