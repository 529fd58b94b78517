package insight

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// apiServices is the kind whose objects say which API server serves a version of a group.
var apiServices = schema.GroupResource{Group: "apiregistration.k8s.io", Resource: "apiservices"}

// ownGroups is the label of APIServices that kube-apiserver maintains for the groups that it serves
// itself.
const ownGroups = "kube-aggregator.kubernetes.io/automanaged"

// Served records an APIService: an aggregated API may have a storage of its own, whose
// resourceVersions cannot be compared with others.
func (w *World) Served(m *metav1.PartialObjectMetadata) {
	if m.Labels[ownGroups] != "" {
		return
	}
	if _, group, named := strings.Cut(m.Name, "."); named { // VERSION.GROUP
		w.aggregated[group] = true
	}
}

// mayHaveCome returns why an owner that a list did not have may exist all the same: it may have
// been created after the list, and before the dependent was written. It is empty if the owner is
// absent, because its kind was listed at a later version than that of the dependent.
func (w *World) mayHaveCome(owners schema.GroupResource, dependent types.UID) string {
	m := w.Meta(dependent)
	v, there := w.Graph.Find(dependent)
	switch {
	case m == nil || !there:
		return ""
	case owners.Group != v.Kind.Group && (w.aggregated[owners.Group] || w.aggregated[v.Kind.Group]):
		return "its API has versions of its own, so whether it came after it was listed is not known"
	}
	if n, err := resourceversion.CompareResourceVersion(m.ResourceVersion, w.read[owners]); err == nil && n > 0 {
		return "the cluster changed while it was listed: ask again"
	}
	return ""
}
