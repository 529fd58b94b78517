package restore

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// made are the kinds that controllers of Kubernetes make for others: "OWNER KIND".
var made = map[string]bool{
	"Deployment ReplicaSet":          true,
	"StatefulSet ControllerRevision": true,
	"DaemonSet ControllerRevision":   true,
	"CronJob Job":                    true,
	"ReplicaSet Pod":                 true,
	"ReplicationController Pod":      true,
	"StatefulSet Pod":                true,
	"DaemonSet Pod":                  true,
	"Job Pod":                        true,
	"Pod PersistentVolumeClaim":      true,
	"Pod ResourceClaim":              true,
	"Service EndpointSlice":          true,
}

// left returns why an object is not made again, whatever is there: a controller makes it, or
// nothing should.
func (p *planning) left(i *item) string {
	o := i.record.Object
	switch i.ref.Kind.String() {
	case "events", "events.events.k8s.io":
		return "Events tell of what was"
	case "leases.coordination.k8s.io":
		return "whoever holds a Lease makes it"
	case "ipaddresses.networking.k8s.io":
		return "its Service makes it"
	case "configmaps":
		if i.ref.Name == "kube-root-ca.crt" {
			return "Kubernetes makes it in each namespace"
		}
	case "secrets":
		if kind, _, _ := unstructured.NestedString(o.Object, "type"); kind == "kubernetes.io/service-account-token" {
			return "its token is that of the ServiceAccount that is gone: make a new one (kubectl create token)"
		}
	case "apiservices.apiregistration.k8s.io":
		if hasLabel(o, "kube-aggregator.kubernetes.io/automanaged", "") {
			return "the API server makes it"
		}
	case "jobs.batch":
		if conditionIsTrue(o, "Complete", "Failed") {
			return "it has finished, and would run again"
		}
	case "pods":
		if phase := phaseOf(o); phase == "Succeeded" || phase == "Failed" {
			return "it has finished, and would run again"
		}
	case "endpoints":
		if p.selects(Ref{Kind: services, Namespace: i.ref.Namespace, Name: i.ref.Name}) {
			return "its Service makes it"
		}
	case "endpointslices.discovery.k8s.io":
		if hasLabel(o, "endpointslice.kubernetes.io/managed-by", "endpointslice") {
			return "its Service makes it"
		}
	case "persistentvolumes":
		if policy, _, _ := unstructured.NestedString(o.Object, "spec", "persistentVolumeReclaimPolicy"); policy == "Delete" {
			return "its data was deleted with it: its reclaim policy was Delete"
		}
	}
	return p.derived(i)
}

// derived returns which controller of Kubernetes makes an object again, because its owner is
// restored or lives.
func (p *planning) derived(i *item) string {
	o := metav1.GetControllerOf(i.record.Object)
	if o == nil {
		return ""
	}
	if !made[o.Kind+" "+i.record.Object.GetKind()] {
		return ""
	}
	ref, why := p.ownerOf(i, *o)
	if why != "" || p.byRef[ref] == nil && p.Live[ref] == nil {
		return ""
	}
	return fmt.Sprintf("%s %s makes it", o.Kind, o.Name)
}

// selects reports whether a Service has a selector, from which endpoints are made.
func (p *planning) selects(ref Ref) bool {
	of := p.Live[ref]
	if i := p.byRef[ref]; i != nil {
		of = i.record.Object
	}
	if of == nil {
		return false
	}
	selector, _, _ := unstructured.NestedMap(of.Object, "spec", "selector")
	return len(selector) > 0
}
