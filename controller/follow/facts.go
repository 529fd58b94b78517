package follow

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/controller/policyfacts"
	"github.com/weir-dev/weir/policies"
)

// Facts returns what the graph and discovery know, for policies. Each call reads the graph as it is
// then, under its lock. The Watcher must be running. What it has not seen yet is unknown, not
// absent. An API group that never answered may serve a kind, and have objects of it.
func (w *Watcher) Facts() policies.Facts {
	of := policyfacts.Of(w.store.Read)
	known := of
	of.Instances = func(kind schema.GroupResource) (policies.AlsoDeleted, bool) {
		if w.silent(kind.Group) {
			return policies.AlsoDeleted{}, false
		}
		return known.Instances(kind)
	}
	of.Kind = func(gvk schema.GroupVersionKind) policies.Kind {
		if slices.Contains(w.Undiscovered(), gvk.GroupVersion().String()) {
			return policies.Kind{}
		}
		return known.Kind(gvk)
	}
	of.Holds = func(s policies.Search, wanted func(schema.GroupResource) bool) ([]policies.Caught, bool) {
		kinds, complete := known.Holds(s, wanted)
		return kinds, complete && !w.silent(s.Instances.Group)
	}
	of.Digest = func(s policies.Search) (string, bool) {
		digest, complete := known.Digest(s)
		return digest, complete && !w.silent(s.Instances.Group)
	}
	return of
}

// silent reports whether a group never answered. The core group counts as answering.
func (w *Watcher) silent(group string) bool {
	return group != "" && slices.ContainsFunc(w.Undiscovered(), func(gv string) bool {
		g, _, _ := strings.Cut(gv, "/")
		return g == group
	})
}
