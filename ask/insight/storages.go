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

// listing is when the objects of a kind were known.
type listing struct {
	version string // the resourceVersion; empty if it is not known
	round   int
}

// NextRound begins a round of lists, after all lists of the last round have ended.
func (w *World) NextRound() { w.round++ }

// Served records an APIService: an aggregated API may have a storage of its own, whose
// resourceVersions cannot be compared with others.
func (w *World) Served(m *metav1.PartialObjectMetadata) {
	if m.Labels[ownGroups] != "" {
		return
	}
	if _, group, named := strings.Cut(m.Name, "."); named { // VERSION.GROUP
		if w.aggregated == nil {
			w.aggregated = map[string]bool{}
		}
		w.aggregated[group] = true
	}
}

// Aggregated reports whether an aggregated API server serves a kind, as far as is known.
func (w *World) Aggregated(kind schema.GroupResource) bool { return w.aggregated[kind.Group] }

// sameStorage reports whether the resourceVersions of two kinds can be compared, as far as is
// known.
func (w *World) sameStorage(a, b schema.GroupResource) bool {
	return a.Group == b.Group || !w.Aggregated(a) && !w.Aggregated(b)
}

// mayHaveCome returns why an owner that a list did not have may exist all the same: it may have
// been created after the list, and before the dependent was written. It is empty if the owner is
// absent, because its kind was listed after the dependent was read, or at a later version.
func (w *World) mayHaveCome(owners schema.GroupResource, dependent types.UID) string {
	m := w.Meta(dependent)
	v, there := w.Graph.Find(dependent)
	if m == nil || !there {
		return ""
	}
	listed := w.read[owners]
	switch of, known := w.read[v.Kind]; {
	case known && of.round < listed.round:
		return ""
	case !w.sameStorage(owners, v.Kind):
		return "its API has versions of its own, so whether it came after it was listed is not known"
	}
	if n, err := resourceversion.CompareResourceVersion(m.ResourceVersion, listed.version); err == nil && n > 0 {
		return "the cluster changed while it was listed: ask again"
	}
	return ""
}
