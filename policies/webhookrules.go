package policies

import (
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/policies/v1beta1"
)

// Webhook is one of Weir's webhooks.
type Webhook string

// WebhookConfigurations is the name of both webhook configurations.
const WebhookConfigurations = "weir"

// Weir's webhooks. Clear is the mutating half of Owners. Cascade judges what a request takes with
// it, where Delete judges the request's own object.
const (
	WebhookAddFinalizer Webhook = "stamp.weir.dev"
	WebhookDelete       Webhook = "delete.weir.dev"
	WebhookOwners       Webhook = "owners.weir.dev"
	WebhookClear        Webhook = "clear.owners.weir.dev"

	WebhookCascade Webhook = "cascade.weir.dev"
	// WebhookGuard judges what the collectors delete of protected objects.
	WebhookGuard Webhook = "guard.weir.dev"
	// WebhookSelection judges updates that take objects out of what protects them.
	WebhookSelection Webhook = "selection.weir.dev"
	// WebhookConfirm records who confirms a delete.
	WebhookConfirm Webhook = "confirm.weir.dev"
	// WebhookCanary judges nothing: by it Weir finds out whether the API server asks Weir.
	WebhookCanary Webhook = "canary.weir.dev"
	// WebhookPolicies refuses policies that cannot work.
	WebhookPolicies Webhook = "policies.weir.dev"
)

// WebhookRules are one entry of a webhook configuration: they say which requests the API server
// sends to Weir.
type WebhookRules struct {
	// Name is unique in the configuration. It ends in the name of the Webhook.
	Name    string
	Webhook Webhook
	// Part is which policies are asked.
	Part Part
	// Mutating entries belong in a MutatingWebhookConfiguration, the others in a
	// ValidatingWebhookConfiguration.
	Mutating        bool
	FailurePolicy   admissionregistrationv1.FailurePolicyType
	Rules           []admissionregistrationv1.RuleWithOperations
	MatchConditions []admissionregistrationv1.MatchCondition
	// The selectors select what any of the policies does, and as little else as possible; nil
	// selects everything.
	NamespaceSelector, ObjectSelector *metav1.LabelSelector
}

// entry is the policies that share an entry: the same webhook and part, whether an update that
// leaves labels and finalizers alone can matter, and whether it is about evictions.
type entry struct {
	webhook    Webhook
	part       Part
	conditions bool
	eviction   bool // of pods, which is no DELETE
	left       bool // the API server judges, and leaves some to Weir
	policies   []*compiled
}

// Webhooks are the entries that the set needs, sorted by name. There are none for which nothing
// asks, and so none at all without policies. A '*' stands for those of the kept resources that it
// names: what the API server stores, and lets be listed, patched and deleted. Whatever else it
// serves is not to be deleted, and must not wait for a webhook.
//
// judged are the webhooks as which the API server judges a policy by itself: it asks Weir less.
func (s *Set) Webhooks(kept []schema.GroupResource, judged map[PolicyKey][]Webhook) []WebhookRules {
	var entries []entry
	add := func(w Webhook, p Part, c *compiled, conditions, eviction bool) {
		left := !eviction && slices.Contains(judged[c.key], w)
		if left && (w == WebhookSelection || w == WebhookOwners) {
			return
		}
		i := slices.IndexFunc(entries, func(e entry) bool {
			return e.webhook == w && e.part == p && e.conditions == conditions && e.eviction == eviction && e.left == left
		})
		if i < 0 {
			i = len(entries)
			entries = append(entries, entry{webhook: w, part: p, conditions: conditions, eviction: eviction, left: left})
		}
		entries[i].policies = append(entries[i].policies, c)
	}
	adds := slices.ContainsFunc(s.deletion, (*compiled).mayAddFinalizer)
	for _, c := range s.deletion {
		if !c.judges() {
			continue
		}
		d := c.deletion
		if !c.ready() || d.propagation != nil || d.brake != nil || d.archive != nil || c.protectsFrom(v1beta1.ProtectDelete) {
			add(WebhookDelete, c.part, c, false, false)
		}
		if c.guards() {
			add(WebhookGuard, c.part, c, false, false)
		}
		if p := d.protection; p != nil && p.Confirmation.Asked() && c.ready() {
			add(WebhookConfirm, "", c, false, false)
		}
		c.addSelection(add)
		if c.guardsEvictions() {
			add(WebhookDelete, c.part, c, false, true)
		}
		if adds && c.mayChangeFinalizer() {
			add(WebhookAddFinalizer, "", c, len(c.conditions) > 0, false)
		}
	}
	for _, c := range s.owners {
		if !c.judges() {
			continue
		}
		add(WebhookOwners, c.part, c, false, false)
		if c.ready() && c.owners.BlockOwnerDeletion == v1beta1.BlockClear {
			add(WebhookClear, c.part, c, false, false)
		}
	}
	var out []WebhookRules
	for _, e := range entries {
		out = append(out, s.lenientWhereItHasToBe(s.rules(e, kept))...)
	}
	out = append(out, s.cascadeRules(kept)...)
	out = append(out, s.drainRules(kept)...)
	out = slices.DeleteFunc(out, func(r WebhookRules) bool { return len(r.Rules) == 0 })
	slices.SortFunc(out, func(a, b WebhookRules) int { return compare(a.Name, b.Name) })
	return out
}

// judges reports whether the policy has an effect. A broken policy has one if its failurePolicy is
// Fail.
func (c *compiled) judges() bool {
	return c.ready() || c.failurePolicy == v1beta1.Fail && len(c.resources) > 0
}

// guardsEvictions reports whether evictions of pods may be refused: by protection, or by a broken
// policy.
func (c *compiled) guardsEvictions() bool {
	return c.about(pods) && (!c.ready() || c.protectsFrom(v1beta1.ProtectEvict))
}

// mayChangeFinalizer tells whether objects may get or lose the finalizer because of the policy: one
// that does not add it can still, by its priority, have that of another removed. Finalizers are
// never waited for, whatever the failurePolicy: what has none gets it when it is deleted, or by
// back-fill, and nothing is created or edited in a cluster without Weir otherwise.
func (c *compiled) mayChangeFinalizer() bool {
	d := c.deletion
	asks := d.brake != nil || !c.asksWho() && (d.propagation != nil || d.archive != nil)
	return c.ready() && !c.onTrial() && asks
}

// mayAddFinalizer reports whether the policy may want the finalizer on some objects.
func (c *compiled) mayAddFinalizer() bool {
	return c.ready() && !c.onTrial() && (c.deletion.addsFinalizer(schema.GroupResource{}) ||
		slices.ContainsFunc(orphanedByDefault, func(gr schema.GroupResource) bool {
			return c.about(gr) && c.deletion.addsFinalizer(gr)
		}))
}

// selects returns the resources that an entry's policies name, and their selectors.
func (e *entry) selects(kept []schema.GroupResource) (resources []scopedRule, namespaces, objects []labels.Selector) {
	for _, c := range e.policies {
		of := c.named(kept)
		if e.webhook == WebhookAddFinalizer {
			of = without(of, func(gr schema.GroupResource) bool { return !propagates(gr) })
		}
		resources = append(resources, scoped(of, c.scope)...)
		namespaces, objects = append(namespaces, c.namespaces), append(objects, c.objects)
	}
	return resources, namespaces, objects
}

func (s *Set) rules(e entry, kept []schema.GroupResource) WebhookRules {
	resources, namespaces, objects := e.selects(kept)
	out := WebhookRules{
		Webhook: e.webhook, Name: string(e.webhook), Part: e.part,
		Mutating:      e.webhook == WebhookAddFinalizer || e.webhook == WebhookClear || e.webhook == WebhookConfirm,
		FailurePolicy: admissionregistrationv1.Ignore,
		MatchConditions: []admissionregistrationv1.MatchCondition{
			{Name: "not-system", Expression: s.notSystem()},
			{Name: "not-terminating", Expression: notTerminating},
		},
		NamespaceSelector: common(namespaces), ObjectSelector: common(objects),
	}
	e.name(&out)
	if e.eviction {
		// The object of such a request is an Eviction, whose labels no selector is meant for.
		out.ObjectSelector = nil
		out.MatchConditions = out.MatchConditions[:1]
		e.whom(&out, kept)
		out.Rules = []admissionregistrationv1.RuleWithOperations{ruleOf(admissionregistrationv1.AllScopes, "",
			[]string{"pods/eviction"}, admissionregistrationv1.Create)}
		return out
	}
	if e.left {
		out.Name = "left." + out.Name
		out.match("left-to-weir", s.leftToWeir(e.webhook))
	}
	e.whom(&out, kept)
	ops := []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update}
	var subresources func(schema.GroupResource) []string
	switch e.webhook {
	case WebhookGuard:
		out.MatchConditions[0] = admissionregistrationv1.MatchCondition{Name: "is-a-collector", Expression: s.isCollector()}
		ops = []admissionregistrationv1.OperationType{admissionregistrationv1.Delete}
	case WebhookDelete:
		out.MatchConditions[1].Expression += " || " + changesPropagation
		out.match("not-held", e.notHeld(kept))
		ops = []admissionregistrationv1.OperationType{admissionregistrationv1.Delete}
	case WebhookSelection:
		ops, subresources = ops[1:], metadataSubresources
		e.onSelection(&out)
	case WebhookConfirm:
		ops, subresources = ops[1:], metadataSubresources
		out.match("confirmation-changes", confirmationChanges)
	case WebhookAddFinalizer:
		subresources = metadataSubresources
		e.onFinalizers(&out)
	case WebhookOwners, WebhookClear:
		subresources = ownerSubresources
		out.match("has-references", "object != null && has(object.metadata) && ("+has("object", "ownerReferences")+
			" || oldObject != null)")
		out.match("references-change", changed("ownerReferences"))
	}
	out.Rules = webhookRules(resources, ops, subresources)
	return out
}

// name prefixes the entry's name with what is special about it.
func (e *entry) name(out *WebhookRules) {
	if e.conditions {
		out.Name = "conditions." + out.Name
	}
	if e.eviction {
		out.Name = "eviction." + out.Name
	}
	if e.part == PartFail || e.part == PartEverywhere {
		out.Name = string(e.part) + "." + out.Name
		out.FailurePolicy = admissionregistrationv1.Fail
	}
}

// leftToWeir says in CEL which DELETEs Weir judges where the API server does by itself: by itself it
// cannot tell who confirmed what and when, judges no collector of Weir's, and tells nothing in a dry run.
func (s *Set) leftToWeir(w Webhook) string {
	of, key := "oldObject.metadata.annotations", celString(v1beta1.ConfirmDeleteAnnotation)
	confirmed := has("oldObject", "annotations") + " && " + key + " in " + of
	if w == WebhookGuard {
		return "request.userInfo.username in " + celList(s.self) + " || " + confirmed
	}
	return "has(request.dryRun) && request.dryRun || " + confirmed
}

// onFinalizers restricts an entry to requests that may change which finalizers an object needs.
func (e *entry) onFinalizers(out *WebhookRules) {
	out.MatchConditions[1].Expression += " || " + takesFinalizer
	out.match("whole-object", "!has(request.subResource) || request.subResource == '' || "+takesFinalizer+" || "+
		armedAtChanges)
	if !e.conditions { // conditions may look at anything
		changes := changed("labels", "finalizers") + " || " + armedAtChanges
		if slices.ContainsFunc(e.policies, (*compiled).readsAnnotation) {
			changes += " || " + declarationChanges
		}
		out.match("stamp-changes", changes)
	}
}

// lenientWhereItHasToBe splits an entry that fails closed in two: in some namespaces it is asked,
// and fails open.
func (s *Set) lenientWhereItHasToBe(r WebhookRules) []WebhookRules {
	namespaces := s.lenient(r.Part)
	if r.FailurePolicy != admissionregistrationv1.Fail || !mayBeNamed(r.NamespaceSelector, namespaces) {
		return []WebhookRules{r}
	}
	only := func(op metav1.LabelSelectorOperator) *metav1.LabelSelector {
		var out metav1.LabelSelector
		if r.NamespaceSelector != nil {
			out = *r.NamespaceSelector.DeepCopy()
		}
		out.MatchExpressions = append(out.MatchExpressions, metav1.LabelSelectorRequirement{Key: corev1.LabelMetadataName,
			Operator: op, Values: namespaces})
		return &out
	}
	there := r
	there.Name, there.FailurePolicy, there.NamespaceSelector = "system."+r.Name, admissionregistrationv1.Ignore,
		only(metav1.LabelSelectorOpIn)
	// What is in no namespace passes every namespaceSelector, and would come twice.
	there.MatchConditions = slices.Clone(r.MatchConditions)
	there.match("in-a-namespace", "has(request.namespace) && request.namespace != ''")
	r.NamespaceSelector = only(metav1.LabelSelectorOpNotIn)
	return []WebhookRules{r, there}
}

// mayBeNamed reports whether a namespace selector may select one of these names.
func mayBeNamed(s *metav1.LabelSelector, names []string) bool {
	return len(names) > 0 && (s == nil || !slices.ContainsFunc(s.MatchExpressions,
		func(e metav1.LabelSelectorRequirement) bool {
			return e.Key == corev1.LabelMetadataName && e.Operator == metav1.LabelSelectorOpIn &&
				!slices.ContainsFunc(e.Values, func(v string) bool { return slices.Contains(names, v) })
		}))
}

// mostExpression bounds an expression that only saves calls, in bytes: the API server accepts
// 100,000 code points, and rejects the whole configuration for a longer one.
const mostExpression = 50_000

// match adds a condition. Without one that is too long, Weir judges what it would have dropped.
func (r *WebhookRules) match(name, expression string) {
	if expression != "" && len(expression) <= mostExpression {
		r.MatchConditions = append(r.MatchConditions, admissionregistrationv1.MatchCondition{Name: name,
			Expression: expression})
	}
}

// whom excludes the requests that no policy of the entry judges because of their user or the
// object's name.
func (e *entry) whom(out *WebhookRules, kept []schema.GroupResource) {
	// These are about the object, whoever writes it.
	if e.webhook != WebhookAddFinalizer && e.webhook != WebhookConfirm {
		all, only := excludedByAll(e.policies), onlyThese(e.policies)
		out.match("not-excluded", all.notExcluded())
		out.match("of-some", only.included())
		var judged []schema.GroupResource
		judging := 0
		for _, c := range e.policies {
			if !c.exempt.controllers {
				judging++
				judged = append(judged, explicit(c.named(kept))...)
			}
		}
		if judging < len(e.policies) && e.webhook != WebhookGuard {
			out.match("not-controllers", notControllers(judged))
		}
	}
	if e.eviction {
		return
	}
	var names []string
	for _, c := range e.policies {
		if len(c.names) == 0 {
			return
		}
		names = append(names, c.names...)
	}
	slices.Sort(names)
	list := celList(slices.Compact(names))
	out.match("named", "object != null && has(object.metadata.name) && object.metadata.name in "+list+
		" || oldObject != null && has(oldObject.metadata.name) && oldObject.metadata.name in "+list)
}

// Asks reports whether there can be entries at all.
func (s *Set) Asks() bool {
	return len(s.drains) > 0 || slices.ContainsFunc(s.deletion, (*compiled).judges) ||
		slices.ContainsFunc(s.owners, (*compiled).judges)
}

// Wildcard reports whether some policy has a '*', so that the entries depend on what the API server
// serves.
func (s *Set) Wildcard() bool {
	return len(s.drains)+len(s.archives)+len(s.guards) > 0 ||
		slices.ContainsFunc(s.policies, func(c *compiled) bool { return wildcard(c.resources) })
}

// changed is the CEL for a request that is no update, or changes one of these fields of metadata.
func changed(fields ...string) string {
	parts := []string{"oldObject == null"}
	for _, f := range fields {
		now, was := has("object", f), has("oldObject", f)
		parts = append(parts,
			"("+now+") != ("+was+") || "+now+" && "+was+" && object.metadata."+f+" != oldObject.metadata."+f)
	}
	return strings.Join(parts, " || ")
}

func has(variable, field string) string { return "has(" + variable + ".metadata." + field + ")" }
