package insight

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/words"
)

// astray describes the owners that an object names and that are there, and do not count: they are
// in another namespace, where a collector does not look for them, or have another kind or API group
// than the reference says. Call it after the owners were looked up.
func (w *World) astray(v *graph.View) (out []string) {
	for _, o := range v.Owners {
		if how := w.elsewhere(o, v.Namespace); how != "" {
			out = append(out, ownerIs(o, how))
		}
	}
	return out
}

// lost describes the owners that an object names and that do not count, or do not exist.
func (w *World) lost(uid types.UID) (out []string) {
	w.settle(uid)
	v, _ := w.Graph.Find(uid)
	for _, o := range v.Owners {
		how := w.elsewhere(o, v.Namespace)
		switch {
		case owns(o.Verdict):
			continue
		case how == "" && o.Verdict == "absent":
			how = "gone"
		case how == "":
			how = "not found, and not known to be gone"
		}
		out = append(out, ownerIs(o, how))
	}
	return out
}

func ownerIs(o graph.OwnerView, how string) string {
	return fmt.Sprintf("its owner %s %s is %s", words.Printable(o.Kind), words.Printable(o.Name), how)
}

// elsewhere says where the object is that has the uid of an owner which does not count; empty if
// none has.
func (w *World) elsewhere(o graph.OwnerView, namespace string) string {
	owner, ok := w.Graph.Find(o.UID)
	switch {
	case !ok || owns(o.Verdict):
		return ""
	case owner.Namespace != "" && owner.Namespace != namespace:
		return "in the namespace " + owner.Namespace + ", where it does not count"
	case o.Verdict == "unresolvable":
		return fmt.Sprintf("%s: a reference to that has the kind %s and the apiVersion %s", objectOf(&owner),
			owner.KindName, schema.GroupVersion{Group: owner.Group, Version: owner.Version})
	}
	return ""
}
