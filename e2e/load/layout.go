package load

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A Kind is what a population is made of.
type Kind struct {
	schema.GroupVersionKind
	Resource string
}

// The kinds of populations, one built in and one custom, and what else a namespace is and has in it.
var (
	ConfigMap      = Kind{schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, "configmaps"}
	Widget         = Kind{schema.GroupVersionKind{Group: "bench.weir.dev", Version: "v1", Kind: "Widget"}, "widgets"}
	Namespace      = Kind{schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, "namespaces"}
	ServiceAccount = Kind{schema.GroupVersionKind{Version: "v1", Kind: "ServiceAccount"}, "serviceaccounts"}
)

// GVR is how clients name the kind.
func (k Kind) GVR() schema.GroupVersionResource {
	return k.GroupVersion().WithResource(k.Resource)
}

// A Layout is one owner and the levels of dependents below it.
type Layout struct {
	Kind Kind
	// Levels says how many dependents each object of the level above has.
	Levels []int
	// CoOwners: each dependent names a second owner, one that never was, and that no other names.
	CoOwners bool
	// Loose: the objects of the levels have no owner, and are not the owner's dependents.
	Loose bool
	// OwnerLabels and Labels are those of the owner and of all others.
	OwnerLabels, Labels map[string]string
}

// Flat is one owner of n ConfigMaps.
func Flat(n int) Layout { return Layout{Kind: ConfigMap, Levels: []int{n}} }

// Tree is one owner of n/50 ConfigMaps of 50 each.
func Tree(n int) Layout { return Layout{Kind: ConfigMap, Levels: []int{max(1, n/50), 50}} }

// CoOwned is Tree, and each object names an owner that never was besides.
func CoOwned(n int) Layout {
	s := Tree(n)
	s.CoOwners = true
	return s
}

// Loose are n ConfigMaps with labels, and one more that does not own them.
func Loose(n int, labels map[string]string) Layout {
	return Layout{Kind: ConfigMap, Levels: []int{n}, Loose: true, Labels: labels}
}

// Custom is one custom resource that owns n others.
func Custom(n int) Layout { return Layout{Kind: Widget, Levels: []int{n}} }
