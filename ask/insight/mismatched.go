package insight

import (
	"cmp"
	"fmt"
	"iter"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
)

// Sought are owners of a kind that objects of the namespace name, and that are not in it. They may
// be in another namespace. A collector looks for owners in the dependent's namespace only, so to it
// they are absent all the same.
type Sought struct {
	Kind graph.Resource
	UIDs map[types.UID]bool
}

// Sought returns the owners of all objects that may be in other namespaces, by kind; none if the
// whole cluster was read.
func (w *World) Sought() []Sought { return w.sought(w.objects()) }

// SoughtBy is Sought for one object.
func (w *World) SoughtBy(uid types.UID) []Sought { return w.sought(w.only(uid)) }

func (w *World) sought(of iter.Seq[*graph.View]) (out []Sought) {
	if w.Namespace == "" {
		return nil
	}
	byKind := map[schema.GroupResource]Sought{}
	for v := range of {
		if len(v.Owners) == 0 || v.Deleting || v.Namespace == "" {
			continue
		}
		w.settle(v.UID)
		now, _ := w.Graph.Find(v.UID)
		for _, o := range now.Owners {
			if k, ok := w.absentFrom(o); ok {
				gr := k.GroupResource()
				if byKind[gr].UIDs == nil {
					byKind[gr] = Sought{k, map[types.UID]bool{}}
				}
				byKind[gr].UIDs[o.UID] = true
			}
		}
	}
	for _, s := range byKind {
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b Sought) int {
		return cmp.Compare(a.Kind.GroupResource().String(), b.Kind.GroupResource().String())
	})
	return out
}

// absentFrom returns the kind of an owner that is absent from the namespace and may be in another.
func (w *World) absentFrom(o graph.OwnerView) (graph.Resource, bool) {
	if o.Verdict != "absent" {
		return graph.Resource{}, false
	}
	for _, gr := range w.Graph.ServedKind(schema.FromAPIVersionAndKind(o.APIVersion, o.Kind)).Resources {
		if k := w.kinds[gr]; k.Namespaced && k.Collected {
			return k, true
		}
	}
	return graph.Resource{}, false
}

// Elsewhere records where owners of s are, from objects of other namespaces. The graph does not get
// the objects, so it concludes nothing from the absence of others.
func (w *World) Elsewhere(s Sought, objects iter.Seq[*metav1.PartialObjectMetadata]) {
	for m := range objects {
		if s.UIDs[m.UID] && m.Namespace != w.Namespace {
			if w.elsewhere == nil {
				w.elsewhere = map[types.UID]string{}
			}
			w.elsewhere[m.UID] = m.Namespace
		}
	}
}

// mismatched returns the namespace of the first owner of an object that is in another namespace
// than the object; empty if none was found. Call it after the owners were looked up: those then
// count as absent.
func (w *World) mismatched(v *graph.View) string {
	for _, o := range v.Owners {
		if in := w.strayed(o, v.Namespace); in != "" {
			return in
		}
	}
	return ""
}

// strayed returns the namespace of an owner, if it is not the one of the object that names it.
func (w *World) strayed(o graph.OwnerView, namespace string) string {
	if owns(o.Verdict) {
		return ""
	}
	if owner, ok := w.Graph.Find(o.UID); ok && owner.Namespace != namespace {
		return owner.Namespace
	}
	return w.elsewhere[o.UID]
}

// misnamed describes objects that have the uid of an owner whose kind cannot be resolved. The
// reference names another API group or kind than theirs, as one may that was written with an older
// API.
func (w *World) misnamed(v *graph.View) (out []string) {
	for _, o := range v.Owners {
		if o.Verdict != "unresolvable" {
			continue
		}
		if owner, ok := w.Graph.Find(o.UID); ok {
			out = append(out, fmt.Sprintf("%s has that uid: a reference to it has the kind %s and the apiVersion %s",
				objectOf(&owner), owner.KindName, schema.GroupVersion{Group: owner.Group, Version: owner.Version}))
		}
	}
	return out
}
