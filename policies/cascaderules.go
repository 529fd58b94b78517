package policies

import (
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/policies/v1alpha1"
)

// neverNamespaced are Kubernetes' own resources that are in no namespace and that policies are likely to protect. Their owners
// are in none either, so nothing has to come to Weir that is in a namespace.
var neverNamespaced = []schema.GroupResource{
	{Resource: "namespaces"}, {Resource: "nodes"}, {Resource: "persistentvolumes"},
	{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"},
	{Group: "rbac.authorization.k8s.io", Resource: "clusterroles"}, {Group: "rbac.authorization.k8s.io", Resource: "clusterrolebindings"},
	{Group: "storage.k8s.io", Resource: "storageclasses"}, {Group: "scheduling.k8s.io", Resource: "priorityclasses"},
	{Group: "networking.k8s.io", Resource: "ingressclasses"}, {Group: "node.k8s.io", Resource: "runtimeclasses"},
}

// clusterScoped tells whether the policy is for certain only about what is in no namespace.
func (c *compiled) clusterScoped() bool {
	return !wildcard(c.resources) && !slices.ContainsFunc(explicit(c.resources), func(gr schema.GroupResource) bool { return !slices.Contains(neverNamespaced, gr) })
}

// cascadeRules let everything come to Weir that may take protected objects with it: every delete, eviction, and edit of owner
// references where those may be. What has dependents, only Weir knows. The failurePolicy is Ignore, whatever the policies
// say: while Weir does not answer, nothing at all could be deleted otherwise.
func (s *Set) cascadeRules(kept []schema.GroupResource) []WebhookRules {
	var out []WebhookRules
	all := named([]v1alpha1.ResourceRule{{APIGroups: []string{"*"}, Resources: []string{"*"}}}, kept)
	for _, g := range []struct {
		prefix string
		scope  v1alpha1.Scope
		in     bool // the policies are about what is in no namespace
	}{{"", v1alpha1.AllScopes, false}, {"cluster.", v1alpha1.ClusterScope, true}} {
		var namespaces []labels.Selector
		everywhere := g.in
		for _, c := range s.guards.all {
			if c.judges() && c.clusterScoped() == g.in {
				namespaces = append(namespaces, c.namespaces)
				// Who owns a Namespace that is selected by its labels is another object.
				everywhere = everywhere || namesResource(c.resources, schema.GroupResource{Resource: "namespaces"})
			}
		}
		if len(namespaces) == 0 {
			continue
		}
		w := WebhookRules{Webhook: WebhookCascade, FailurePolicy: admissionregistrationv1.Ignore}
		if !everywhere {
			w.NamespaceSelector = common(namespaces)
		}
		notSystem := admissionregistrationv1.MatchCondition{Name: "not-system", Expression: s.notSystem()}

		deletes := w
		deletes.Name = g.prefix + string(WebhookCascade)
		deletes.Rules = webhookRules(scoped(all, g.scope), []admissionregistrationv1.OperationType{admissionregistrationv1.Delete}, false)
		if !g.in && slices.Contains(kept, pods) {
			deletes.Rules = append(deletes.Rules, evictions())
		}
		deletes.MatchConditions = []admissionregistrationv1.MatchCondition{notSystem, {Name: "not-terminating", Expression: notTerminating + " || " + changesPropagation}}

		edits := w
		edits.Name = g.prefix + "references." + string(WebhookCascade)
		edits.Rules = webhookRules(scoped(all, g.scope), []admissionregistrationv1.OperationType{admissionregistrationv1.Update}, true)
		edits.MatchConditions = []admissionregistrationv1.MatchCondition{
			notSystem, {Name: "not-terminating", Expression: notTerminating},
			{Name: "has-references", Expression: "object != null && has(object.metadata) && " + has("object", "ownerReferences")},
			changed("references-change", "ownerReferences"),
		}
		out = append(out, deletes, edits)
	}
	return out
}

// evictions are of pods: the CREATE of an Eviction.
func evictions() admissionregistrationv1.RuleWithOperations {
	return admissionregistrationv1.RuleWithOperations{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"*"}, Resources: []string{"pods/eviction"}, Scope: new(admissionregistrationv1.AllScopes)},
	}
}
