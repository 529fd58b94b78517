package policies

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/policies/cel"
	"github.com/weir-dev/weir/policies/v1alpha1"
)

// Census says how to find out how many objects of a resource policies are about, and about which
// their conditions fail.
type Census struct {
	// All are policies that are about every object.
	All []PolicyKey
	// Some are those that have to be asked about each object that Selector selects; nil is every
	// one.
	Some     []PolicyKey
	Selector *metav1.LabelSelector
}

// CensusOf is that of a resource. Policies that are broken count nothing.
func (s *Set) CensusOf(gr schema.GroupResource) Census {
	var out Census
	var selectors []labels.Selector
	for _, c := range s.counting(gr) {
		if !c.asked() {
			out.All = append(out.All, c.key)
			continue
		}
		out.Some = append(out.Some, c.key)
		selectors = append(selectors, c.objects)
	}
	if len(out.Some) > 0 {
		out.Selector = common(selectors)
	}
	return out
}

// SameCensus tells whether the policies that are counted by objects of a resource are those of
// another set, which this one came from.
func (s *Set) SameCensus(gr schema.GroupResource, other *Set) bool {
	return slices.Equal(s.counting(gr), other.counting(gr))
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

// About are those of CensusOf's Some that a stored object passes: a DeletionPolicy as at its
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
	return slices.ContainsFunc(c.conditions, func(cond cel.Condition) bool { return !cond.Countable() })
}

// asked tells whether it depends on the object whether the policy is about it; of DrainPolicies it
// depends on the others.
func (c *compiled) asked() bool {
	some := c.scope == v1alpha1.NamespacedScope || c.scope == v1alpha1.ClusterScope
	return len(c.conditions) > 0 || c.objects != nil || c.namespaces != nil || len(c.names) > 0 || some || c.waves != nil
}
