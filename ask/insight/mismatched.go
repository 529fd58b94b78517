package insight

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/controller/graph"
)

// mismatched returns the namespace of the first owner of an object that is in another namespace
// than the object; empty if none was read. A collector looks for owners in the dependent's namespace
// only, so to it they are absent all the same. Call it after the owners were looked up.
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
	return ""
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
