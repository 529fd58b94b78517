package policies

import (
	"cmp"
	"fmt"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	admissioncel "k8s.io/apiserver/pkg/admission/plugin/cel"

	"github.com/weir-dev/weir/policies/cel"
	"github.com/weir-dev/weir/policies/v1beta1"
)

// constraints returns which requests the policy is about.
func (p *inProcess) constraints() *admissionregistrationv1.MatchResources {
	out := &admissionregistrationv1.MatchResources{MatchPolicy: new(admissionregistrationv1.Equivalent)}
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
	return &admissionregistrationv1.MatchResources{MatchPolicy: new(admissionregistrationv1.Equivalent),
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
				p.leaveOut("spec.match.resources",
					fmt.Sprintf("beside %s, '*' names all of the API group", explicit(p.c.resources)[i]))
			}
			continue
		}
		out = append(out, r)
	}
	return out
}

// celCollects is collects in CEL.
var celCollects = "request.userInfo.username in " + celList([]string{GarbageCollector, namespaceController}) +
	" || request.userInfo.username == " + celString(oneIdentity) + " && (" + emptiesAsOne +
	" || has(request.options) && request.options != null && has(request.options.preconditions) && " +
	"has(request.options.preconditions.uid))"

// whom excludes the requests that the policy does not judge because of their user or the object's
// name.
func (p *inProcess) whom(collectors bool) {
	system := p.set.notSystem()
	if collectors {
		system = "(" + system + ") || request.operation == 'DELETE' && (" + celCollects + ")"
	}
	p.match("not-system", system)
	p.match("not-excluded", p.c.exempt.notExcluded())
	p.match("of-some", p.c.only.included())
	if p.c.exempt.controllers {
		controllers := notControllers(nil)
		if collectors {
			controllers += " || " + celCollects
		}
		p.match("not-controllers", controllers)
	}
	if len(p.c.names) > 0 {
		p.match("named", "(oldObject == null ? object : oldObject).metadata.name in "+celList(p.c.names))
	}
	for _, one := range p.c.conditions {
		if !cel.Mentions(one.Text, admissioncel.NamespaceVarName) {
			p.match("condition/"+one.Name, one.Text)
		}
	}
}
