package policies

import (
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/policies/v1beta1"
)

// neverNamespaced are cluster-scoped resources of Kubernetes that policies are likely to protect.
// Their owners are cluster-scoped, too, so deletes in namespaces need not come to Weir for them.
var neverNamespaced = []schema.GroupResource{
	{Resource: "namespaces"}, {Resource: "nodes"}, {Resource: "persistentvolumes"},
	{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"},
	{Group: "rbac.authorization.k8s.io", Resource: "clusterroles"},
	{Group: "rbac.authorization.k8s.io", Resource: "clusterrolebindings"},
	{Group: "storage.k8s.io", Resource: "storageclasses"}, {Group: "scheduling.k8s.io", Resource: "priorityclasses"},
	{Group: "networking.k8s.io", Resource: "ingressclasses"}, {Group: "node.k8s.io", Resource: "runtimeclasses"},
}

// clusterScoped reports whether the policy is for certain only about cluster-scoped objects.
func (c *compiled) clusterScoped() bool {
	return !wildcard(c.resources) && !slices.ContainsFunc(explicit(c.resources),
		func(gr schema.GroupResource) bool { return !slices.Contains(neverNamespaced, gr) })
}

// cascadeRules returns the entries for deletes that may take protected objects with them. Only Weir
// knows which objects have dependents. The failurePolicy is Ignore, whatever the policies say:
// otherwise nothing at all could be deleted while Weir does not answer.
func (s *Set) cascadeRules(kept []schema.GroupResource) []WebhookRules {
	var out []WebhookRules
	all := named([]v1beta1.ResourceRule{{APIGroups: []string{"*"}, Resources: []string{"*"}}}, kept)
	for _, g := range []struct {
		prefix string
		scope  v1beta1.Scope
		in     bool // the policies are about cluster-scoped objects
	}{{"", v1beta1.AllScopes, false}, {"cluster.", v1beta1.ClusterScope, true}} {
		var namespaces []labels.Selector
		everywhere := g.in
		for _, c := range s.guards {
			if c.judges() && c.clusterScoped() == g.in {
				namespaces = append(namespaces, c.namespaces)
				// Who owns a Namespace that is selected by its labels is another object.
				everywhere = everywhere || namesResource(c.resources, schema.GroupResource{Resource: "namespaces"})
			}
		}
		if len(namespaces) == 0 {
			continue
		}
		w := WebhookRules{
			Name: g.prefix + string(WebhookCascade), Webhook: WebhookCascade, FailurePolicy: admissionregistrationv1.Ignore,
			Rules: webhookRules(scoped(all, g.scope),
				[]admissionregistrationv1.OperationType{admissionregistrationv1.Delete}, nil),
			MatchConditions: []admissionregistrationv1.MatchCondition{
				// The collectors delete Namespaces and definitions, too, and nobody is asked about
				// what those hold.
				{Name: "not-system", Expression: s.notSystem() +
					" || request.resource.resource in ['namespaces', 'customresourcedefinitions']"},
				{Name: "not-terminating", Expression: notTerminating},
			},
		}
		if !everywhere {
			w.NamespaceSelector = common(namespaces)
		}
		out = append(out, w)
	}
	return out
}

// evictions matches evictions of pods, the CREATE of an Eviction.
func evictions() admissionregistrationv1.RuleWithOperations {
	return ruleOf(admissionregistrationv1.AllScopes, "", []string{"pods/eviction"}, admissionregistrationv1.Create)
}
