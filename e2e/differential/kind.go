package differential

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

const group = "differential.weir.test"

// A Kind is one of those that worlds are made of. Scripts name objects by it: cm1, gear4.
type Kind struct {
	Short string
	schema.GroupVersionKind
	Resource string
	Cluster  bool
	// Other is another version under which it is served.
	Other string
	// wrong is the kind that a reference of the wrong kind names instead.
	wrong string
}

// Kinds are two built-in namespaced kinds, a built-in cluster-scoped one, and a custom one of each
// scope.
var Kinds = []Kind{
	{"cm", schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, "configmaps", false, "", "sec"},
	{"sec", schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, "secrets", false, "", "cm"},
	{"role", schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}, "clusterroles", true, "", "axle"},
	{"gear", schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Gear"}, "gears", false, "v2", "cm"},
	{"axle", schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Axle"}, "axles", true, "v2", "role"},
}

func (k Kind) gvr() schema.GroupVersionResource { return k.GroupVersion().WithResource(k.Resource) }

// KindOf is the kind that an object's name begins with.
func KindOf(name string) Kind {
	return kindNamed(strings.TrimRight(name, "0123456789"))
}

func kindNamed(short string) Kind {
	for _, k := range Kinds {
		if k.Short == short {
			return k
		}
	}
	panic("no kind " + short)
}
