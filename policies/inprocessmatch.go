package policies

import (
	"cmp"
	"fmt"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/policies/v1beta1"
)

// constraints returns which requests the policy is about.
func (p *inProcess) constraints() *admissionregistrationv1.MatchResources {
	anyVersion := admissionregistrationv1.Equivalent
	out := &admissionregistrationv1.MatchResources{MatchPolicy: &anyVersion}
	type operation = admissionregistrationv1.OperationType
	type rule = admissionregistrationv1.NamedRuleWithOperations
	add := func(op operation, subresources func(schema.GroupResource) []string) {
		for _, r := range webhookRules(scoped(p.c.resources, p.c.scope), []operation{op}, subresources) {
			if subresources != nil && slices.Contains(r.Resources, "*") {
				r.Resources = append(r.Resources, "*/status", "*/finalize", "*/approval")
			}
			out.ResourceRules = append(out.ResourceRules, rule{RuleWithOperations: r})
		}
	}
	if p.deletes {
		add(admissionregistrationv1.Delete, nil)
	}
	if p.creates {
		add(admissionregistrationv1.Create, nil)
	}
	if p.updates != nil {
		add(admissionregistrationv1.Update, p.updates)
	}
	left := scoped(append(p.leftOut(), p.c.excluded...), "")
	for _, r := range webhookRules(left, []operation{admissionregistrationv1.OperationAll}, nil) {
		out.ExcludeResourceRules = append(out.ExcludeResourceRules, rule{RuleWithOperations: r})
	}
	return out
}

// selected returns the selectors. They are in the binding: the API server parses those of a policy
// at every write, before it looks at the resource, and those of a binding only at writes that the
// policy is about.
func (p *inProcess) selected() *admissionregistrationv1.MatchResources {
	if p.c.namespaces == nil && p.c.objects == nil {
		return nil
	}
	anyVersion := admissionregistrationv1.Equivalent
	return &admissionregistrationv1.MatchResources{MatchPolicy: &anyVersion,
		NamespaceSelector: asLabelSelector(p.c.namespaces), ObjectSelector: asLabelSelector(p.c.objects)}
}

// asLabelSelector is exact: a compiled selector was made from a LabelSelector.
func asLabelSelector(s labels.Selector) *metav1.LabelSelector {
	if s == nil {
		return nil
	}
	out, err := metav1.ParseToLabelSelector(s.String())
	if err != nil {
		panic(fmt.Sprintf("selector %q: %v", s, err))
	}
	return out
}

// leftOut returns the resources that a '*' does not name, except those named beside it.
func (p *inProcess) leftOut() []v1beta1.ResourceRule {
	if !wildcard(p.c.resources) {
		return nil
	}
	var out []v1beta1.ResourceRule
	for _, gr := range leftOut {
		r := v1beta1.ResourceRule{APIGroups: []string{gr.Group}, Resources: []string{cmp.Or(gr.Resource, "*")}}
		if i := slices.IndexFunc(explicit(p.c.resources), func(named schema.GroupResource) bool {
			return named.Group == gr.Group && (gr.Resource == "" || gr.Resource == named.Resource)
		}); i >= 0 {
			if gr.Resource == "" {
				p.leaveOut(
					"spec.match.resources",
					fmt.Sprintf("beside %s, '*' names all of the API group", explicit(p.c.resources)[i]),
				)
			}
			continue
		}
		out = append(out, r)
	}
	return out
}
