package policies

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/policies/cel"
	"github.com/weir-dev/weir/policies/v1beta1"
)

// Look says how to look at the stored objects of a resource: to add the finalizer, and to find out
// how many policies are about, and about which their conditions fail.
type Look struct {
	// All are policies that are about every object.
	All []PolicyKey
	// Some are those that have to be asked about each object (About).
	Some []PolicyKey
	// Adds: there may be objects that are to carry the finalizer (FinalizersFor). Full: more than
	// their metadata has to be known to tell.
	Adds, Full bool
	// Selector selects the objects about which it has to be asked, and as few others as can be said
	// in one selector; "" is all of them. Without Asks there are none.
	Selector string
	Asks     bool
}

// LookAt is that at a resource. Policies that are broken count nothing.
func (s *Set) LookAt(gr schema.GroupResource) Look {
	var out Look
	out.Adds, out.Full = s.AddsFinalizer(gr)
	var selectors []labels.Selector
	for _, c := range s.addingFinalizers(gr) {
		selectors = append(selectors, c.objects)
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

// SameLook tells whether the policies that a look at a resource asks are those of another set, which
// this one came from.
func (s *Set) SameLook(gr schema.GroupResource, other *Set) bool {
	return slices.Equal(s.deletion.about(gr), other.deletion.about(gr)) &&
		slices.Equal(s.counting(gr), other.counting(gr))
}

// counting are the policies whose objects are of a resource, and may be counted; of a DrainPolicy
// these are namespaces.
func (s *Set) counting(gr schema.GroupResource) []*compiled {
	out := slices.Concat(s.deletion.about(gr), s.owners.about(gr))
	out = slices.DeleteFunc(out, func(c *compiled) bool { return !c.ready() || c.uncounted() })
	if gr == (schema.GroupResource{Resource: "namespaces"}) {
		out = append(out, s.drains...)
	}
	return out
}

// About are those of a Look's Some that a stored object passes: a DeletionPolicy as at its
// DELETE, another as at an UPDATE that changes nothing. Of DrainPolicies the first that selects a
// namespace holds, and is the only one.
func (s *Set) About(q Question) (keys []PolicyKey, errs []PolicyError) {
	asDelete := evaluate(q.asDelete(), s.deletion.shared)
	asUpdate := evaluate(&q, s.owners.shared)
	drained := false
	for _, c := range s.counting(q.Resource.GroupResource()) {
		e := &asUpdate
		switch {
		case c.deletion != nil:
			e = &asDelete
		case c.waves != nil && drained:
			continue
		}
		ok, err := c.matches(e)
		switch {
		case err != nil:
			errs = append(errs, PolicyError{Policy: c.key, Err: err.Error()})
		case ok && c.asked():
			keys = append(keys, c.key)
		}
		drained = drained || c.waves != nil && ok
	}
	return keys, errs
}

// uncounted tells that it is not told about how many objects the policy is: whoever wrote its
// conditions could read there what objects hold.
func (c *compiled) uncounted() bool {
	return c.asksMay || slices.ContainsFunc(c.conditions, func(cond cel.Condition) bool { return !cond.Countable() })
}

// asked tells whether it depends on the object whether the policy is about it; of DrainPolicies it
// depends on the others.
func (c *compiled) asked() bool {
	some := c.scope == v1beta1.NamespacedScope || c.scope == v1beta1.ClusterScope
	return len(c.conditions) > 0 || c.objects != nil || c.namespaces != nil || len(c.names) > 0 || some || c.waves != nil
}
