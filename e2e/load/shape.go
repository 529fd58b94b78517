package load

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A Kind is what a population is made of.
type Kind struct {
	schema.GroupVersionKind
	Resource string
}

// The kinds of populations: one built in, one custom.
var (
	ConfigMap = Kind{schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, "configmaps"}
	Widget    = Kind{schema.GroupVersionKind{Group: "bench.weir.dev", Version: "v1", Kind: "Widget"}, "widgets"}
)

// What else a namespace is, and has in it.
var (
	namespaceKind      = Kind{schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, "namespaces"}
	serviceAccountKind = Kind{schema.GroupVersionKind{Version: "v1", Kind: "ServiceAccount"}, "serviceaccounts"}
)

func (k Kind) gvr() schema.GroupVersionResource {
	return k.GroupVersion().WithResource(k.Resource)
}

// A Shape is one owner and the levels of dependents below it.
type Shape struct {
	Name string
	Kind Kind
	// Levels says how many dependents each object of the level above has.
	Levels []int
}

// Flat is one owner of n ConfigMaps.
func Flat(n int) Shape { return Shape{"flat", ConfigMap, []int{n}} }

// Tree is one owner of n/50 ConfigMaps of 50 each.
func Tree(n int) Shape { return Shape{"tree", ConfigMap, []int{max(1, n/50), 50}} }

// Custom is one custom resource that owns n others.
func Custom(n int) Shape { return Shape{"custom", Widget, []int{n}} }

// Dependents is how many objects hang below the owner.
func (s Shape) Dependents() int {
	total, level := 0, 1
	for _, n := range s.Levels {
		level *= n
		total += level
	}
	return total
}
