package policies

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/policies/v1beta1"
)

// Guards tells whether some policy may protect objects of a resource from the collectors, too.
func (s *Set) Guards(gr schema.GroupResource) bool {
	return slices.ContainsFunc(s.guards.about(gr), func(c *compiled) bool { return c.judges() && !c.onTrial() })
}

// guard judges what a collector deletes, the built-in ones and Weir's: the delete of a protected
// object is the last moment before the loss, with the object in it, and nothing that happened at
// its owners before can outrun it. What is refused here is released from its owners by the leader
// (collect), so that no collector comes again.
func (s *Set) guard(q *Question, v *verdict) {
	gr := q.Resource.GroupResource()
	if q.Subresource != "" || !s.collects(q) || object(q.OldObject).terminating() || isUsual(gr, q.name()) {
		return
	}
	if gr.String() == "configmaps" && q.name() == v1beta1.CollectorCanary {
		return // any collector but Weir is to delete it
	}
	s.protect(q, propagation{policy: cmp.Or(optionAsks(q), v1beta1.Background)}, newEvaluator(q, &s.guards, "the delete of ", v))
}

// collects tells whether who sends a DELETE carries out what others asked for. Where all
// controllers have one identity, the collector is known by the uid that it names and the namespace
// controller as emptiesNamespaces says.
func (s *Set) collects(q *Question) bool {
	switch q.User.Name {
	case GarbageCollector, namespaceController:
		return true
	case oneIdentity:
		return emptiesNamespaces(q) || object(q.Options).str("preconditions", "uid") != ""
	}
	return slices.Contains(s.self, q.User.Name)
}

// isCollector says in CEL who may be one.
func (s *Set) isCollector() string {
	return "has(request.userInfo.username) && request.userInfo.username in " +
		celList(slices.Concat([]string{GarbageCollector, namespaceController, oneIdentity}, s.self))
}

// isUsual tells whether an object is one that Kubernetes itself puts into every namespace: a
// namespace that holds nothing else is empty.
func isUsual(gr schema.GroupResource, name string) bool {
	return gr.String() == "configmaps" && name == "kube-root-ca.crt" || gr.String() == "serviceaccounts" && name == "default"
}
