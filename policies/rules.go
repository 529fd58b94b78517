package policies

import (
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/policies/v1alpha1"
)

// Webhook is one of Weir's webhooks.
type Webhook string

// Weir's webhooks. Clear is the mutating half of Owners.
const (
	WebhookStamp  Webhook = "stamp.weir.dev"
	WebhookDelete Webhook = "delete.weir.dev"
	WebhookOwners Webhook = "owners.weir.dev"
	WebhookClear  Webhook = "clear.owners.weir.dev"
)

// WebhookRules are what one entry of a webhook configuration has to say: which requests come to Weir at all.
type WebhookRules struct {
	// Name is unique in the configuration. It ends in the name of the Webhook.
	Name    string
	Webhook Webhook
	// Mutating entries belong in a MutatingWebhookConfiguration, the others in a ValidatingWebhookConfiguration.
	Mutating        bool
	FailurePolicy   admissionregistrationv1.FailurePolicyType
	Rules           []admissionregistrationv1.RuleWithOperations
	MatchConditions []admissionregistrationv1.MatchCondition
	// The selectors select what one of the policies does, and as little else as can be said; nil is everything.
	NamespaceSelector, ObjectSelector *metav1.LabelSelector
}

// entry gathers the policies that share an entry: a webhook, a failure policy, and whether an update that leaves labels
// and finalizers alone can matter.
type entry struct {
	webhook    Webhook
	failure    v1alpha1.FailurePolicy
	conditions bool
	resources  []v1alpha1.ResourceRule
	namespaces []labels.Selector
	objects    []labels.Selector
}

// Webhooks are the entries that the set needs, sorted by name. There are none for which nothing asks, and so none at all
// without policies.
func (s *Set) Webhooks() []WebhookRules {
	var entries []entry
	add := func(w Webhook, c *compiled, conditions bool) {
		i := slices.IndexFunc(entries, func(e entry) bool {
			return e.webhook == w && e.failure == c.failurePolicy && e.conditions == conditions
		})
		if i < 0 {
			i = len(entries)
			entries = append(entries, entry{webhook: w, failure: c.failurePolicy, conditions: conditions})
		}
		e := &entries[i]
		e.resources, e.namespaces, e.objects = append(e.resources, c.resources...), append(e.namespaces, c.namespaces), append(e.objects, c.objects)
	}
	stamps := slices.ContainsFunc(s.deletion.all, (*compiled).mayStamp)
	for _, c := range s.deletion.all {
		if !c.judges() {
			continue
		}
		add(WebhookDelete, c, false)
		if stamps && c.ready() && c.deletion.propagation != nil {
			// A policy that does not stamp itself can still, by its priority, take the stamp of another away.
			add(WebhookStamp, c, len(c.conditions) > 0)
		}
	}
	for _, c := range s.owners.all {
		if !c.judges() {
			continue
		}
		add(WebhookOwners, c, false)
		if c.ready() && c.owners.BlockOwnerDeletion == v1alpha1.BlockClear {
			add(WebhookClear, c, false)
		}
	}
	var out []WebhookRules
	for _, e := range entries {
		out = append(out, s.rules(e))
	}
	if len(s.drains) > 0 {
		out = append(out, s.drainRules())
	}
	slices.SortFunc(out, func(a, b WebhookRules) int { return compare(a.Name, b.Name) })
	return out
}

// judges tells whether the policy can make a difference: one that is broken does if its failurePolicy is Fail.
func (c *compiled) judges() bool {
	return c.ready() || c.failurePolicy == v1alpha1.Fail && len(c.resources) > 0
}

// mayStamp tells whether there can be objects that the policy wants stamped.
func (c *compiled) mayStamp() bool {
	return c.ready() && (c.deletion.stamps(schema.GroupResource{}) || slices.ContainsFunc(orphanedByDefault, func(gr schema.GroupResource) bool {
		return namesResource(c.resources, gr) && c.deletion.stamps(gr)
	}))
}

func (s *Set) rules(e entry) WebhookRules {
	out := WebhookRules{
		Webhook: e.webhook, Name: string(e.webhook),
		Mutating:      e.webhook == WebhookStamp || e.webhook == WebhookClear,
		FailurePolicy: admissionregistrationv1.FailurePolicyType(e.failure),
		MatchConditions: []admissionregistrationv1.MatchCondition{
			{Name: "not-system", Expression: s.notSystem()},
			{Name: "not-terminating", Expression: notTerminating},
		},
		NamespaceSelector: common(e.namespaces), ObjectSelector: common(e.objects),
	}
	if e.conditions {
		out.Name = "conditions." + out.Name
	}
	if e.failure == v1alpha1.Fail {
		out.Name = "fail." + out.Name
	}
	if cond := notLeftOut(e.resources); cond != "" {
		out.MatchConditions = append(out.MatchConditions, admissionregistrationv1.MatchCondition{Name: "not-left-out", Expression: cond})
	}
	ops := []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update}
	status := false
	switch e.webhook {
	case WebhookDelete:
		ops = []admissionregistrationv1.OperationType{admissionregistrationv1.Delete}
	case WebhookStamp:
		if !e.conditions { // conditions may look at anything
			out.MatchConditions = append(out.MatchConditions, changed("stamp-changes", "labels", "finalizers"))
		}
	case WebhookOwners, WebhookClear:
		status = true
		out.MatchConditions = append(out.MatchConditions,
			admissionregistrationv1.MatchCondition{Name: "has-references", Expression: "object != null && has(object.metadata) && (" + has("object", "ownerReferences") + " || oldObject != null)"},
			changed("references-change", "ownerReferences"))
	}
	out.Rules = webhookRules(e.resources, ops, status)
	return out
}

// drainRules let the namespace controller's deletes come to Weir, which holds those of later waves.
func (s *Set) drainRules() WebhookRules {
	all := []v1alpha1.ResourceRule{{APIGroups: []string{"*"}, Resources: []string{"*"}}}
	r := webhookRules(all, []admissionregistrationv1.OperationType{admissionregistrationv1.Delete}, false)
	var named []v1alpha1.ResourceRule
	var namespaces []labels.Selector
	for _, c := range s.drains {
		named, namespaces = append(named, c.resources...), append(namespaces, c.namespaces)
	}
	scope := admissionregistrationv1.NamespacedScope
	r[0].Scope = &scope
	return WebhookRules{
		Name: "drain." + string(WebhookDelete), Webhook: WebhookDelete, FailurePolicy: admissionregistrationv1.Ignore, Rules: r,
		NamespaceSelector: common(namespaces),
		MatchConditions: []admissionregistrationv1.MatchCondition{
			{Name: "is-namespace-controller", Expression: "has(request.userInfo.username) && request.userInfo.username == " + celString(namespaceController)},
			{Name: "not-terminating", Expression: notTerminating},
			{Name: "not-left-out", Expression: notLeftOut(append(all, named...))},
		},
	}
}

// webhookRules puts resource rules into the words of webhook configurations, each once.
func webhookRules(in []v1alpha1.ResourceRule, ops []admissionregistrationv1.OperationType, status bool) []admissionregistrationv1.RuleWithOperations {
	var out []admissionregistrationv1.RuleWithOperations
	seen := map[string]bool{}
	for _, r := range in {
		groups, resources := slices.Sorted(slices.Values(r.APIGroups)), slices.Sorted(slices.Values(r.Resources))
		key := strings.Join(groups, ",") + "/" + strings.Join(resources, ",")
		if seen[key] {
			continue
		}
		seen[key] = true
		if status {
			for _, res := range resources[:len(resources):len(resources)] {
				// Some kinds let an update of their status change references. Pods do not.
				if res != "pods" {
					resources = append(resources, res+"/status")
				}
			}
		}
		out = append(out, admissionregistrationv1.RuleWithOperations{Operations: ops, Rule: admissionregistrationv1.Rule{
			APIGroups: groups, APIVersions: []string{"*"}, Resources: resources,
		}})
	}
	slices.SortFunc(out, func(a, b admissionregistrationv1.RuleWithOperations) int {
		if c := slices.Compare(a.APIGroups, b.APIGroups); c != 0 {
			return c
		}
		return slices.Compare(a.Resources, b.Resources)
	})
	return out
}

// changed drops updates that leave fields of the metadata as they are.
func changed(name string, fields ...string) admissionregistrationv1.MatchCondition {
	parts := []string{"oldObject == null"}
	for _, f := range fields {
		now, was := has("object", f), has("oldObject", f)
		parts = append(parts, "("+now+") != ("+was+") || "+now+" && "+was+" && object.metadata."+f+" != oldObject.metadata."+f)
	}
	return admissionregistrationv1.MatchCondition{Name: name, Expression: strings.Join(parts, " || ")}
}

func has(variable, field string) string { return "has(" + variable + ".metadata." + field + ")" }
