package policies

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/weir-dev/weir/policies/cel"
	"github.com/weir-dev/weir/policies/v1beta1"
)

// matcher is a compiled Match.
type matcher struct {
	resources  []v1beta1.ResourceRule
	excluded   []v1beta1.ResourceRule
	names      []string // empty for all
	scope      v1beta1.Scope
	exempt     excluded
	only       excluded        // the users whose requests are judged; nobody for all users
	namespaces labels.Selector // nil for all
	objects    labels.Selector // nil for all
	conditions []cel.Condition
	// broken is why conditions cannot be evaluated.
	broken string
}

// namesResource reports whether one of the rules names a resource.
func namesResource(rules []v1beta1.ResourceRule, gr schema.GroupResource) bool {
	return slices.ContainsFunc(rules, func(r v1beta1.ResourceRule) bool { return ruleNames(r, gr) })
}

func ruleNames(r v1beta1.ResourceRule, gr schema.GroupResource) bool {
	if !slices.Contains(r.APIGroups, gr.Group) && !slices.Contains(r.APIGroups, "*") {
		return false
	}
	return slices.Contains(r.Resources, gr.Resource) ||
		slices.Contains(r.Resources, "*") && !wildcardLeavesOut(gr.Group, gr.Resource)
}

// about reports whether the policy is about a resource.
func (m *matcher) about(gr schema.GroupResource) bool {
	return namesResource(m.resources, gr) && !m.excludes(gr)
}

// excludes reports whether a resource is excluded. Here '*' also names what it otherwise leaves
// out.
func (m *matcher) excludes(gr schema.GroupResource) bool {
	has := func(list []string, s string) bool { return slices.Contains(list, s) || slices.Contains(list, "*") }
	return slices.ContainsFunc(m.excluded, func(r v1beta1.ResourceRule) bool {
		return has(r.APIGroups, gr.Group) && has(r.Resources, gr.Resource)
	})
}

// usable returns the rules that a webhook configuration can hold. The schema accepts no others, but
// a policy with failurePolicy Fail also counts if the schema does not accept it. For one bad rule
// the API server would refuse the configuration, and with it all other policies.
func usable(rules []v1beta1.ResourceRule) []v1beta1.ResourceRule {
	var out []v1beta1.ResourceRule
	for _, r := range rules {
		r.Resources = slices.DeleteFunc(slices.Clone(r.Resources), func(name string) bool {
			return name == "" || name != "*" && strings.ContainsAny(name, "*/")
		})
		if len(r.APIGroups) > 0 && len(r.Resources) > 0 {
			out = append(out, r)
		}
	}
	return out
}

// usableScope does the same for a scope: an unknown one may mean either.
func usableScope(s v1beta1.Scope) v1beta1.Scope {
	if s == v1beta1.NamespacedScope || s == v1beta1.ClusterScope {
		return s
	}
	return v1beta1.AllScopes
}

// inScope reports whether the object of a question is in a scope. Admission says that a Namespace
// is in itself.
func inScope(s v1beta1.Scope, q *Question) bool {
	switch s {
	case v1beta1.NamespacedScope:
		return q.namespaced()
	case v1beta1.ClusterScope:
		return !q.namespaced()
	}
	return true
}

// wildcard reports whether rules can match resources that none names.
func wildcard(rules []v1beta1.ResourceRule) bool {
	return slices.ContainsFunc(rules, func(r v1beta1.ResourceRule) bool {
		return slices.Contains(r.APIGroups, "*") || slices.Contains(r.Resources, "*")
	})
}

// explicit returns the resources that rules name.
func explicit(rules []v1beta1.ResourceRule) []schema.GroupResource {
	var out []schema.GroupResource
	for _, r := range rules {
		for _, g := range r.APIGroups {
			for _, res := range r.Resources {
				if g != "*" && res != "*" {
					out = append(out, schema.GroupResource{Group: g, Resource: res})
				}
			}
		}
	}
	return out
}

// compileSelector returns nil for a selector of everything. A broken selector matches everything:
// with failurePolicy Fail the policy refuses too much, not too little.
func (c *compiled) compileSelector(s *metav1.LabelSelector, at *field.Path) labels.Selector {
	if s == nil {
		return nil
	}
	bad := metav1validation.ValidateLabelSelector(s, metav1validation.LabelSelectorValidationOptions{}, at)
	sel, err := metav1.LabelSelectorAsSelector(s)
	if err != nil && len(bad) == 0 {
		bad = field.ErrorList{field.Invalid(at, field.OmitValueType{}, err.Error())}
	}
	for _, err := range bad {
		c.problem(err)
	}
	if len(bad) > 0 || sel.Empty() {
		return nil
	}
	return sel
}

// matches reports whether an object passes all parts; the caller has looked up the resource. An
// error is a condition that cannot be evaluated, which is neither yes nor no.
func (m *matcher) matches(e *evaluation) (bool, error) {
	if ok, err := m.selects(e.q); !ok || err != nil {
		return false, err
	}
	if m.broken != "" {
		return false, fmt.Errorf("%s", m.broken)
	}
	return e.All(m.conditions)
}

// forSome reports whether the policy judges only the requests of some users.
func (m *matcher) forSome() bool {
	return len(m.only.users)+len(m.only.groups)+len(m.only.accounts) > 0
}

func (m *matcher) selects(q *Question) (bool, error) {
	if m.objects != nil && !m.selectsObject(q) || !inScope(m.scope, q) ||
		len(m.names) > 0 && !slices.Contains(m.names, q.name()) {
		return false, nil
	}
	if !q.anyUser && (m.exempt.has(q.User) || m.forSome() && !m.only.has(q.User)) {
		return false, nil
	}
	if m.namespaces == nil {
		return true, nil
	}
	ns, selected, known := q.namespaceLabels()
	switch {
	case !selected:
		return true, nil
	case !known:
		return false, fmt.Errorf("the labels of namespace %q are not known", q.Namespace)
	}
	return m.namespaces.Matches(ns), nil
}

// namespaceLabels returns the labels that a namespaceSelector selects by; of a Namespace, its own.
// Cluster-scoped objects pass every namespaceSelector.
func (q *Question) namespaceLabels() (l labelSet, selected, known bool) {
	switch {
	case q.isNamespace():
		return q.judged().labels(), true, true
	case q.Namespace == "":
		return nil, false, true
	}
	return object(q.NamespaceObject).labels(), true, q.NamespaceObject != nil
}

func (m *matcher) selectsObject(q *Question) bool {
	return q.Object != nil && m.objects.Matches(object(q.Object).labels()) ||
		q.OldObject != nil && m.objects.Matches(object(q.OldObject).labels())
}
