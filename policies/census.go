package policies

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/policies/v1beta1"
)

// Look says how to look at the stored objects of a resource, to add the finalizer, and to count the
// objects that policies match.
type Look struct {
	// All are policies that are about every object.
	All []PolicyKey
	// Some are those that have to be asked about each object (About).
	Some []PolicyKey
	// Adds: some objects may have to carry the finalizer (FinalizersFor). Full: telling that takes
	// more than their metadata.
	Adds, Full bool
	// Selector selects the objects to ask about, and as few others as one selector can; "" selects
	// all. If Asks is false, there are none.
	Selector string
	Asks     bool
}

// LookAt returns the Look for a resource. Broken policies count nothing.
func (s *Set) LookAt(gr schema.GroupResource) Look {
	var out Look
	out.Adds, out.Full = s.AddsFinalizer(gr)
	var selectors []labels.Selector
	for _, c := range naming(s.deletion, gr) {
		if c.mayAdd(gr) {
			selectors = append(selectors, c.objects)
		}
	}
	for _, c := range s.counting(gr) {
		if !c.asked() {
			out.All = append(out.All, c.key)
			continue
		}
		out.Some = append(out.Some, c.key)
		selectors = append(selectors, c.objects)
	}
	out.Asks = len(selectors) > 0
	if of := common(selectors); of != nil {
		out.Selector = metav1.FormatLabelSelector(of)
	}
	return out
}

// SameLook reports whether the policies that a look at a resource asks are the same in another set,
// from which this one was built.
func (s *Set) SameLook(gr schema.GroupResource, other *Set) bool {
	return slices.Equal(naming(s.deletion, gr), naming(other.deletion, gr)) &&
		slices.Equal(s.counting(gr), other.counting(gr))
}

// counting returns the policies that match objects of a resource, and may count them. DrainPolicies
// match namespaces.
func (s *Set) counting(gr schema.GroupResource) []*compiled {
	out := slices.Concat(naming(s.deletion, gr), naming(s.owners, gr))
	if gr == namespaceResource {
		out = append(out, s.drains...)
	}
	return slices.DeleteFunc(out, func(c *compiled) bool { return !c.ready() || c.uncounted() })
}

// About returns those of a Look's Some that match a stored object, whoever asks about it.
func (s *Set) About(q Question) (keys []PolicyKey) {
	e := evaluate(q.asDelete())
	for _, c := range s.counting(q.Resource.GroupResource()) {
		if ok, err := c.matches(&e); ok && err == nil && c.asked() {
			keys = append(keys, c.key)
		}
	}
	return keys
}

// uncounted reports whether the number of objects that the policy matches is withheld: an author of
// conditions could read from it what objects hold.
func (c *compiled) uncounted() bool { return len(c.conditions) > 0 }

// asked reports whether a match depends on the object.
func (c *compiled) asked() bool {
	some := c.scope == v1beta1.NamespacedScope || c.scope == v1beta1.ClusterScope
	return c.objects != nil || c.namespaces != nil || len(c.names) > 0 || some || c.waves != nil
}
