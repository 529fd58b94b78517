package policies

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/policies/v1beta1"
)

// Guards reports whether some policy may protect objects of a resource from the collectors, too.
func (s *Set) Guards(gr schema.GroupResource) bool {
	return slices.ContainsFunc(naming(s.guards, gr), func(c *compiled) bool { return c.judges() && !c.onTrial() })
}

// guard judges deletes by collectors, the built-in ones and Weir's. The delete of a protected
// object is the last moment before the loss, with the object in it, and nothing that happened at
// its owners before can outrun it. The leader (collect) releases an object whose delete is refused
// here from its owners, so that no collector comes again.
func (s *Set) guard(q *Question, v *verdict) {
	gr := q.Resource.GroupResource()
	if q.Subresource != "" || !s.collects(q) || object(q.OldObject).terminating() || graph.Usual(gr, q.name()) {
		return
	}
	if gr.String() == "configmaps" && q.name() == v1beta1.CollectorCanary {
		return // any collector but Weir must delete it
	}
	s.protect(q, propagation{policy: cmp.Or(optionAsks(q), v1beta1.Background)},
		newEvaluator(q, s.guards, "the delete of ", v))
}

// collects reports whether a DELETE comes from a collector. If all controllers share an identity,
// the garbage collector is recognised by the uid that it names, and the namespace controller as by
// emptiesNamespaces.
func (s *Set) collects(q *Question) bool {
	switch q.User.Name {
	case GarbageCollector, namespaceController:
		return true
	case oneIdentity:
		return emptiesNamespaces(q) || object(q.Options).str("preconditions", "uid") != ""
	}
	return slices.Contains(s.self, q.User.Name)
}

// isCollector is the CEL for users that may be collectors.
func (s *Set) isCollector() string {
	return "has(request.userInfo.username) && request.userInfo.username in " +
		celList(slices.Concat([]string{GarbageCollector, namespaceController, oneIdentity}, s.self))
}
