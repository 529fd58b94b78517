package policies

import (
	"cmp"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/policies/v1beta1"
)

// named returns rules without a '*': the resources that it names take its place, group by group.
func named(rules []v1beta1.ResourceRule, kept []schema.GroupResource) []v1beta1.ResourceRule {
	var out []v1beta1.ResourceRule
	for _, r := range rules {
		if !wildcard([]v1beta1.ResourceRule{r}) {
			out = append(out, r)
			continue
		}
		byGroup := map[string][]string{}
		for _, gr := range kept {
			if ruleNames(r, gr) {
				byGroup[gr.Group] = append(byGroup[gr.Group], gr.Resource)
			}
		}
		for group, resources := range byGroup {
			out = append(out, v1beta1.ResourceRule{APIGroups: []string{group}, Resources: resources})
		}
	}
	return out
}

// named returns the policy's rules without a '*', and without what it excludes.
func (m *matcher) named(kept []schema.GroupResource) []v1beta1.ResourceRule {
	return without(named(m.resources, kept), m.excludes)
}

// scopedRule is a rule of a policy, and its scope.
type scopedRule struct {
	v1beta1.ResourceRule
	scope admissionregistrationv1.ScopeType
}

func scoped(rules []v1beta1.ResourceRule, scope v1beta1.Scope) []scopedRule {
	out := make([]scopedRule, len(rules))
	for i, r := range rules {
		out[i] = scopedRule{r, admissionregistrationv1.ScopeType(cmp.Or(scope, v1beta1.AllScopes))}
	}
	return out
}

// without returns rules without the resources for which drop is true, and without rules that are
// then empty.
func without(rules []v1beta1.ResourceRule, drop func(schema.GroupResource) bool) []v1beta1.ResourceRule {
	var out []v1beta1.ResourceRule
	for _, r := range rules {
		if !slices.ContainsFunc(explicit([]v1beta1.ResourceRule{r}), drop) {
			out = append(out, r)
			continue
		}
		for _, g := range r.APIGroups { // each by itself: what is dropped of one may be wanted of another
			left := slices.DeleteFunc(slices.Clone(r.Resources),
				func(res string) bool { return drop(schema.GroupResource{Group: g, Resource: res}) })
			if len(left) > 0 {
				out = append(out, v1beta1.ResourceRule{APIGroups: []string{g}, Resources: left})
			}
		}
	}
	return out
}

// webhookRules converts resource rules, which have no '*', to rules of webhook configurations, each
// once.
func webhookRules(in []scopedRule, ops []admissionregistrationv1.OperationType,
	subresources func(schema.GroupResource) []string) []admissionregistrationv1.RuleWithOperations {
	var out []admissionregistrationv1.RuleWithOperations
	seen := map[string]bool{}
	for _, r := range in {
		groups, resources := slices.Sorted(slices.Values(r.APIGroups)), slices.Sorted(slices.Values(r.Resources))
		key := strings.Join(groups, ",") + "/" + strings.Join(resources, ",") + "/" + string(r.scope)
		if seen[key] {
			continue
		}
		seen[key] = true
		if subresources != nil {
			for _, gr := range explicit([]v1beta1.ResourceRule{{APIGroups: groups, Resources: resources}}) {
				for _, sub := range subresources(gr) {
					if name := gr.Resource + "/" + sub; !slices.Contains(resources, name) {
						resources = append(resources, name)
					}
				}
			}
		}
		out = append(out, admissionregistrationv1.RuleWithOperations{Operations: ops, Rule: admissionregistrationv1.Rule{
			APIGroups: groups, APIVersions: []string{"*"}, Resources: resources, Scope: &r.scope,
		}})
	}
	slices.SortFunc(out, func(a, b admissionregistrationv1.RuleWithOperations) int {
		return cmp.Or(slices.Compare(a.APIGroups, b.APIGroups), slices.Compare(a.Resources, b.Resources),
			cmp.Compare(*a.Scope, *b.Scope))
	})
	return out
}

// ruleOf returns a rule for resources of an API group in any version.
func ruleOf(scope admissionregistrationv1.ScopeType, group string, resources []string,
	ops ...admissionregistrationv1.OperationType) admissionregistrationv1.RuleWithOperations {
	return admissionregistrationv1.RuleWithOperations{Operations: ops, Rule: admissionregistrationv1.Rule{
		APIGroups: []string{group}, APIVersions: []string{"*"}, Resources: resources, Scope: &scope}}
}
