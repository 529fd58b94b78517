package policies

import (
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/policies/v1beta1"
)

// neverNamespaced are cluster-scoped resources of Kubernetes that policies are likely to protect.
// No namespaced object, Namespace or definition takes one along.
var neverNamespaced = []schema.GroupResource{
	namespaceResource, {Resource: "nodes"}, {Resource: "persistentvolumes"}, definitions,
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

// cascadeRules returns the entry for deletes that may take protected objects with them. Only Weir
// knows which objects have dependents. The failurePolicy is Ignore, whatever the policies say:
// otherwise nothing at all could be deleted while Weir does not answer.
func (s *Set) cascadeRules(kept []schema.GroupResource) []WebhookRules {
	var namespaces []labels.Selector
	for _, c := range s.guards {
		if c.judges() && !c.clusterScoped() {
			namespaces = append(namespaces, c.namespaces)
		}
	}
	if len(namespaces) == 0 {
		return nil
	}
	all := scoped(named([]v1beta1.ResourceRule{{APIGroups: []string{"*"}, Resources: []string{"*"}}}, kept),
		v1beta1.NamespacedScope)
	for _, holder := range []schema.GroupResource{namespaceResource, definitions} {
		all = append(all, scopedRule{v1beta1.ResourceRule{APIGroups: []string{holder.Group},
			Resources: []string{holder.Resource}}, admissionregistrationv1.ClusterScope})
	}
	return []WebhookRules{{
		Name: string(WebhookCascade), Webhook: WebhookCascade, FailurePolicy: admissionregistrationv1.Ignore,
		Rules:             webhookRules(all, []admissionregistrationv1.OperationType{admissionregistrationv1.Delete}, nil),
		NamespaceSelector: common(namespaces),
		MatchConditions: []admissionregistrationv1.MatchCondition{
			// The collectors delete Namespaces and definitions, too, and nobody is asked about
			// what those hold.
			{Name: "not-system", Expression: s.notSystem() +
				" || request.resource.resource in ['namespaces', 'customresourcedefinitions']"},
			{Name: "not-terminating", Expression: notTerminating},
		},
	}}
}
