package insight

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/policies/v1beta1"
)

// Garbage returns the objects that are garbage now and have an owner of a kind, sorted by name. A
// kind that the cluster does not serve any more has no objects, so its owners are absent; otherwise
// their dependents would be kept.
func (w *World) Garbage(owners schema.GroupResource) (uids []types.UID) {
	w.unserved(owners)
	type named struct {
		uid  types.UID
		name string
	}
	var of []named
	for v := range w.objects() {
		if !v.Deleting && slices.ContainsFunc(v.Owners, func(o graph.OwnerView) bool { return w.isOf(o, owners) }) {
			of = append(of, named{v.UID, v.String()})
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

// Limited returns the objects of a kind whose deletion is held because more objects would also be
// deleted than a policy allows, sorted by name. If enforce is nil, they are all that Weir's
// finalizer holds.
func (w *World) Limited(kind schema.GroupResource, enforce func(graph.View) Enforcement) (uids []types.UID) {
	var all []*graph.View
	for v := range w.objects() {
		if v.Kind == kind && v.Deleting && slices.Contains(v.Finalizers, v1beta1.Finalizer) &&
			(enforce == nil || w.exceeds(v, enforce(*v))) {
			all = append(all, v)
		}
	}
	slices.SortFunc(all, func(a, b *graph.View) int { return cmp.Compare(a.String(), b.String()) })
	for _, v := range all {
		uids = append(uids, v.UID)
	}
	return uids
}

// exceeds reports whether more objects would also be deleted than a policy allows.
func (w *World) exceeds(v *graph.View, e Enforcement) bool {
	return e.Limit != nil && w.alsoDeleted(v, e) > *e.Limit
}

// alsoDeleted returns how many objects would also be deleted.
func (w *World) alsoDeleted(v *graph.View, e Enforcement) (n int) {
	if e.Propagation == metav1.DeletePropagationOrphan {
		return 0
	}
	counted, _, _ := w.Graph.Cascade(graph.Search{UID: v.UID, Kept: e.Keeps}, 0)
	for _, f := range counted {
		n += f.Count
	}
	return n
}

// isOf reports whether an owner is of a kind.
func (w *World) isOf(o graph.OwnerView, owners schema.GroupResource) bool {
	return slices.Contains(w.Graph.ServedKind(schema.FromAPIVersionAndKind(o.APIVersion, o.Kind)).Resources, owners)
}

// unserved makes a kind that is not served any more known as a kind without objects. Its names are
// those that owner references have.
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
	w.kinds[owners], w.read[owners] = gone, "" // no object of it can be created any more
	w.Graph.Apply(graph.Serving{Resources: append(all, gone)})
}
