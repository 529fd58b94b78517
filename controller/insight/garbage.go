package insight

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
)

// Garbage are the objects that are garbage now, one of whose owners is of a kind: by name. A kind that the cluster does not serve any
// more has no objects, so its owners are not there; without that, what refers to them is kept.
func (w *World) Garbage(owners schema.GroupResource) (uids []types.UID) {
	w.unserved(owners)
	type named struct {
		uid  types.UID
		name string
	}
	var of []named
	for v := range w.objects() {
		if !v.Deleting && slices.ContainsFunc(v.Owners, func(o graph.OwnerView) bool { return w.isOf(o, owners) }) {
			of = append(of, named{v.UID, v.Ref.String()})
		}
	}
	slices.SortFunc(of, func(a, b named) int { return cmp.Compare(a.name, b.name) })
	for _, o := range of {
		w.settle(o.uid)
		if w.Graph.Decide(o.uid).Verb == graph.Delete {
			uids = append(uids, o.uid)
		}
	}
	return uids
}

// isOf tells whether an owner is of a kind.
func (w *World) isOf(o graph.OwnerView, owners schema.GroupResource) bool {
	return slices.Contains(w.Graph.ServedKind(schema.FromAPIVersionAndKind(o.APIVersion, o.Kind)).Resources, owners)
}

// unserved has a kind that is not served any more be one without objects, as owners name it.
func (w *World) unserved(owners schema.GroupResource) {
	if w.Serves(owners) {
		return
	}
	var all []graph.Resource
	for _, k := range w.kinds {
		all = append(all, k)
	}
	gone := graph.Resource{Group: owners.Group, Resource: owners.Resource, Namespaced: true}
	for v := range w.objects() {
		for _, o := range v.Owners {
			gvk := schema.FromAPIVersionAndKind(o.APIVersion, o.Kind)
			plural, _ := meta.UnsafeGuessKindToResource(gvk)
			if gvk.Group != owners.Group || plural.Resource != owners.Resource && gone.Kind != gvk.Kind {
				continue
			}
			gone.Kind, gone.Version = gvk.Kind, gvk.Version
			if !slices.Contains(gone.Versions, gvk.Version) {
				gone.Versions = append(gone.Versions, gvk.Version)
			}
			gone.Namespaced = gone.Namespaced && v.Namespace != ""
		}
	}
	if gone.Kind == "" {
		return
	}
	w.kinds[owners], w.read[owners] = gone, 0
	w.Graph.Apply(graph.Serving{Resources: append(all, gone)})
}
