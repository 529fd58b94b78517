package restore

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/policies/v1beta1"
)

// foreignFinalizers are those of the garbage collector, and those that components add to every
// object that is to have them. All others are restored.
var foreignFinalizers = []string{"foregroundDeletion", "orphan", v1beta1.Finalizer,
	"kubernetes.io/pvc-protection", "kubernetes.io/pv-protection", "customresourcecleanup.apiextensions.k8s.io",
	"batch.kubernetes.io/job-tracking", "service.kubernetes.io/load-balancer-cleanup"}

// ended are annotations about the object that is gone.
var ended = []string{v1beta1.RestoredAnnotation, v1beta1.ArmedAtAnnotation,
	v1beta1.ConfirmDeleteAnnotation, v1beta1.KeptAnnotation,
	v1beta1.DrainAnnotation, v1beta1.DrainSinceAnnotation, v1beta1.DrainSealAnnotation,
	"pv.kubernetes.io/bind-completed", "pv.kubernetes.io/bound-by-controller"}

// Manifest returns an object as its user would write it: without what the API server and
// controllers write, without owners, and without status.
func Manifest(kind schema.GroupResource, o *unstructured.Unstructured) *unstructured.Unstructured {
	out := o.DeepCopy()
	delete(out.Object, "status")
	out.Object["metadata"] = map[string]any{}
	out.SetName(o.GetName())
	out.SetNamespace(o.GetNamespace())
	if labels := o.GetLabels(); len(labels) > 0 {
		out.SetLabels(labels)
	}
	annotations := maps.Clone(o.GetAnnotations())
	maps.DeleteFunc(annotations, func(name, _ string) bool { return slices.Contains(ended, name) })
	if len(annotations) > 0 {
		out.SetAnnotations(annotations)
	}
	foreign := func(f string) bool { return slices.Contains(foreignFinalizers, f) }
	if finalizers := slices.DeleteFunc(o.GetFinalizers(), foreign); len(finalizers) > 0 {
		out.SetFinalizers(finalizers)
	}
	switch kind {
	case jobs:
		// The API server selects the pods of a Job by its uid, and refuses the selector of another.
		if manual, _, _ := unstructured.NestedBool(out.Object, "spec", "manualSelector"); !manual {
			unstructured.RemoveNestedField(out.Object, "spec", "selector")
			for _, label := range []string{"controller-uid", "job-name"} {
				dropLabel(out.Object, label)
				dropLabel(out.Object, "batch.kubernetes.io/"+label)
			}
		}
	case pods:
		unstructured.RemoveNestedField(out.Object, "spec", "nodeName") // the node may be gone
		unstructured.RemoveNestedField(out.Object, "spec", "ephemeralContainers")
	}
	return out
}

// dropLabel removes a label of a Job and of its pods.
func dropLabel(job map[string]any, label string) {
	unstructured.RemoveNestedField(job, "metadata", "labels", label)
	unstructured.RemoveNestedField(job, "spec", "template", "metadata", "labels", label)
}

// takeOver makes an object replace a live one, and only that one. Its owners and finalizers stay,
// since somebody may rely on them.
func takeOver(o, live *unstructured.Unstructured) {
	o.SetUID(live.GetUID())
	o.SetResourceVersion(live.GetResourceVersion())
	o.SetOwnerReferences(live.GetOwnerReferences())
	finalizers := live.GetFinalizers()
	for _, f := range o.GetFinalizers() {
		if !slices.Contains(finalizers, f) {
			finalizers = append(finalizers, f)
		}
	}
	o.SetFinalizers(finalizers)
}

// managersOf returns the field managers of an object that a client applies on the server, as Helm
// does for a chart. It is nil for other objects.
func managersOf(o *unstructured.Unstructured) (all []metav1.ManagedFieldsEntry) {
	applied := false
	for _, m := range o.GetManagedFields() {
		if m.Subresource == "" {
			all = append(all, m)
			applied = applied || m.Operation == metav1.ManagedFieldsOperationApply
		}
	}
	if !applied {
		return nil
	}
	return all
}

// Equal reports whether two objects of a kind are the same to their users.
func Equal(kind schema.GroupResource, a, b *unstructured.Unstructured) bool {
	a, b = Manifest(kind, a), Manifest(kind, b)
	b.SetAPIVersion(a.GetAPIVersion())
	a.SetFinalizers(nil)
	b.SetFinalizers(nil)
	return equality.Semantic.DeepEqual(a.Object, b.Object)
}

// statusOf returns the status that can be restored: that of a custom resource, without observed
// generations. These would hide edits until the new object has as many.
func statusOf(i *item) (status any, ok bool) {
	status, ok = i.record.Object.Object["status"]
	if !ok || !i.kind.Custom {
		return nil, false
	}
	return withoutGenerations(status), true
}

func withoutGenerations(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, below := range v {
			if k != "observedGeneration" {
				out[k] = withoutGenerations(below)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for n, below := range v {
			out[n] = withoutGenerations(below)
		}
		return out
	}
	return v
}

// WithoutAddresses returns a Service without the addresses and ports that the API server chooses
// where none are asked for; false if it asks for none.
func WithoutAddresses(o *unstructured.Unstructured) (*unstructured.Unstructured, bool) {
	if o.GetKind() != "Service" || o.GetAPIVersion() != "v1" {
		return nil, false
	}
	out := o.DeepCopy()
	spec, _, _ := unstructured.NestedMap(out.Object, "spec")
	if spec["clusterIP"] != "None" {
		delete(spec, "clusterIP")
		delete(spec, "clusterIPs")
	}
	delete(spec, "healthCheckNodePort")
	ports, _ := spec["ports"].([]any)
	for _, port := range ports {
		if port, ok := port.(map[string]any); ok {
			delete(port, "nodePort")
		}
	}
	out.Object["spec"] = spec
	return out, !equality.Semantic.DeepEqual(out.Object, o.Object)
}

// conditionIsTrue reports whether one of some conditions is true.
func conditionIsTrue(o *unstructured.Unstructured, types ...string) bool {
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["status"] == "True" {
			if name, _ := c["type"].(string); slices.Contains(types, name) {
				return true
			}
		}
	}
	return false
}

func phaseOf(o *unstructured.Unstructured) string {
	phase, _, _ := unstructured.NestedString(o.Object, "status", "phase")
	return phase
}

func hasLabel(o *unstructured.Unstructured, name, prefix string) bool {
	value, ok := o.GetLabels()[name]
	return ok && strings.HasPrefix(value, prefix)
}
