package policies

import (
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/weir-dev/weir/policies/cel"
	"github.com/weir-dev/weir/policies/v1beta1"
)

// guardsSelection reports whether an update that takes an object out of the policy is judged as its
// delete.
func (c *compiled) guardsSelection() bool {
	p := c.deletion.protection
	return p != nil && p.Confirmation.Asked() && p.GuardSelection == v1beta1.GuardSelectionRefuse
}

// guardSelection judges an UPDATE after which a policy would no longer protect its object, so that
// the next delete would pass. It asks nothing of the graph, so a limit of dependents does not count
// here.
func (s *Set) guardSelection(q *Question, v *verdict) {
	if q.Operation != Update || !writesMetadata(q.Resource.GroupResource(), q.Subresource) {
		return
	}
	was, is := q.deleting(q.OldObject, q.oldObject), q.deleting(q.Object, q.object)
	terminates := object(q.NamespaceObject).terminating()
	before, after := evaluate(was), evaluate(is)
	for _, c := range naming(s.deletion, q.Resource.GroupResource()) {
		if !q.Part.has(c) || !c.guardsSelection() || terminates && !c.guards() {
			continue
		}
		stays, unknown := c.stays(&after)
		if stays && unknown == nil {
			continue
		}
		yes, stale := s.confirmedForAny(was, c)
		if !yes {
			yes, stale = s.confirmedForAny(is, c)
		}
		if yes {
			continue
		}
		protected, err := c.matches(&before)
		switch {
		case err != nil && unknown == nil:
			v.fail(c, "the update of "+q.what(), err)
		case protected:
			v.add(c, finding{code: 403,
				text: q.what() + " may not be updated without confirmation: it would no longer be protected" + stale,
				way:  "To update it, confirm and update again: " + howToConfirm(q, propagation{}),
			}, c.actions)
		}
	}
}

// stays reports whether a policy matches an object, as far as its metadata says. Conditions that
// look further are left out: users who may write the object decide what is in it.
func (m *matcher) stays(e *evaluation) (bool, error) {
	if ok, err := m.selects(e.q); !ok || err != nil {
		return false, err
	}
	return e.All(slices.DeleteFunc(slices.Clone(m.conditions), func(c cel.Condition) bool { return !c.MetadataOnly() }))
}

// writesMetadata reports whether an update of a subresource may write labels, owners and the like:
// for Kubernetes' older kinds, updates of status can.
func writesMetadata(gr schema.GroupResource, subresource string) bool {
	return subresource == "" || slices.Contains(metadataSubresources(gr), subresource)
}

func metadataSubresources(gr schema.GroupResource) []string {
	switch gr {
	case schema.GroupResource{Resource: "namespaces"}:
		return []string{"finalize", "status"}
	case schema.GroupResource{Group: "certificates.k8s.io", Resource: "certificatesigningrequests"}:
		return []string{"approval", "status"}
	}
	return []string{"status"}
}

// addSelection adds the entries of a policy that guards its selection, or reads declarations. The
// API server can judge selectors; only Weir can judge conditions, so updates never wait for that
// entry.
func (c *compiled) addSelection(add func(w Webhook, p Part, c *compiled, conditions, eviction bool)) {
	if len(c.leaving()) > 0 {
		add(WebhookSelection, c.part, c, false, false)
	}
	if c.guardsSelection() && len(c.conditionFields()) > 0 {
		add(WebhookSelection, c.part, c, true, false)
	}
}

// onSelection restricts an entry to updates that may take an object out of a policy, or change its
// declaration.
func (e *entry) onSelection(out *WebhookRules) {
	var says []string
	for _, c := range e.policies {
		says = append(says, c.leaving()...)
		if c.namespaces != nil && c.about(schema.GroupResource{Resource: "namespaces"}) {
			out.NamespaceSelector = nil // of a Namespace the new labels would be selected
		}
	}
	declares := slices.ContainsFunc(e.policies, (*compiled).readsAnnotation)
	if declares {
		out.MatchConditions[1].Expression += " || " + declarationChanges
	}
	slices.Sort(says)
	name, leaves := "leaves", strings.Join(slices.Compact(says), " || ")
	if e.conditions || len(leaves) > mostExpression {
		fields := []string{"labels"}
		if declares {
			fields = append(fields, "annotations")
		}
		for _, c := range e.policies {
			fields = append(fields, c.conditionFields()...)
		}
		slices.Sort(fields)
		name, leaves = "selection-changes", changed(slices.Compact(fields)...)
	}
	if e.conditions {
		out.FailurePolicy = admissionregistrationv1.Ignore
	}
	out.match(name, leaves)
}

// leaving returns the CEL for each kind of update that takes an object out by labels, and for one
// that changes its declaration.
func (c *compiled) leaving() []string {
	var out []string
	if c.readsAnnotation() {
		out = append(out, declarationChanges)
	}
	if !c.guardsSelection() {
		return out
	}
	if c.objects != nil {
		out = append(out, leaves(c.objects))
	}
	if c.namespaces != nil && c.about(schema.GroupResource{Resource: "namespaces"}) {
		out = append(out, "request.resource.resource == 'namespaces' && "+leaves(c.namespaces))
	}
	return out
}

func leaves(s labels.Selector) string {
	return "(" + selectsIn(s, "oldObject") + ") && !(" + selectsIn(s, "object") + ")"
}

// selectsIn is a selector in CEL.
func selectsIn(s labels.Selector, variable string) string {
	requirements, _ := s.Requirements()
	var parts []string
	for _, r := range requirements {
		of, key := variable+".metadata.labels", celString(r.Key())
		there := has(variable, "labels") + " && " + key + " in " + of
		one := there + " && " + of + "[" + key + "] in " + celList(sortedValues(r))
		switch {
		case oneOfValues(r):
			parts = append(parts, one)
		case r.Operator() == selection.NotIn || r.Operator() == selection.NotEquals:
			parts = append(parts, "!("+one+")")
		case r.Operator() == selection.Exists:
			parts = append(parts, there)
		default: // a LabelSelector can say nothing else
			parts = append(parts, "!("+there+")")
		}
	}
	return strings.Join(parts, " && ")
}

// conditionFields returns the fields of metadata that conditions may look at and an update may
// change.
func (c *compiled) conditionFields() []string {
	var out []string
	for _, f := range []string{"annotations", "finalizers", "labels", "ownerReferences"} {
		if slices.ContainsFunc(c.conditions, func(cond cel.Condition) bool {
			return cond.MetadataOnly() && strings.Contains(cond.Text, f)
		}) {
			out = append(out, f)
		}
	}
	return out
}
