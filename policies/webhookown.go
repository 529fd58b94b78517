package policies

import (
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/policies/v1beta1"
)

// Canary is the name of the Lease whose dry-run deletes Weir refuses, to see whether the API server
// asks it. It leases nothing. Few webhooks match Leases.
const Canary = "weir-canary"

// CanaryRules returns the entry for the Lease in a namespace. The API server says why it could not
// ask only under Fail, so the entry must not hold up requests of users: it matches only dry runs
// about that one object.
func CanaryRules(namespace string) WebhookRules {
	return WebhookRules{
		Name: string(WebhookCanary), Webhook: WebhookCanary, FailurePolicy: admissionregistrationv1.Fail,
		Rules:             []admissionregistrationv1.RuleWithOperations{canaryRule()},
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
		ObjectSelector:    &metav1.LabelSelector{MatchLabels: map[string]string{v1beta1.CanaryLabel: "true"}},
		MatchConditions: []admissionregistrationv1.MatchCondition{{Name: "is-canary",
			Expression: "has(request.dryRun) && request.dryRun && has(request.name) && request.name == " + celString(Canary)}},
	}
}

// canaryRule matches deletes of Leases.
func canaryRule() admissionregistrationv1.RuleWithOperations {
	return ruleOf(admissionregistrationv1.NamespacedScope, coordinationv1.GroupName, []string{"leases"},
		admissionregistrationv1.Delete)
}

// CanaryAnswer returns the words in which a delete of the canary is refused. The number, which the
// request carries as its gracePeriodSeconds, tells this answer from others.
func CanaryAnswer(gracePeriodSeconds int64) string {
	return fmt.Sprintf("this dry run is refused so that weir sees whether the API server asks it (%d)", gracePeriodSeconds)
}

// AnswerToCanary returns the answer to a request with these options.
func AnswerToCanary(options map[string]any) string {
	n, _ := object(options).at("gracePeriodSeconds").(int64) // the API server accepts no other type
	return CanaryAnswer(n)
}

// CheckRules returns the entry for writes of policies. It fails open: what it misses is in the
// condition Valid, and nobody must be kept from fixing a policy.
func CheckRules() WebhookRules {
	return WebhookRules{
		Name: string(WebhookPolicies), Webhook: WebhookPolicies, FailurePolicy: admissionregistrationv1.Ignore,
		Rules: []admissionregistrationv1.RuleWithOperations{ruleOf(admissionregistrationv1.ClusterScope,
			v1beta1.GroupVersion.Group,
			[]string{"deletionpolicies", "drainpolicies", "ownerreferencepolicies"},
			admissionregistrationv1.Create, admissionregistrationv1.Update)},
		MatchConditions: []admissionregistrationv1.MatchCondition{{Name: "spec-changes",
			Expression: "oldObject == null || !has(oldObject.spec) || !has(object.spec) || object.spec != oldObject.spec"}},
	}
}

// Check judges a policy that is written. Errors of weir policy lint refuse it, and its warnings
// become warnings.
func Check(q *Question) (Decision, error) {
	full, err := q.object.full(q.Object)
	if err != nil {
		return Decision{}, err
	}
	var wrong, likely []Problem
	for _, p := range compile(Source{Object: full}).problems {
		if p.Warning {
			likely = append(likely, p)
		} else {
			wrong = append(wrong, p)
		}
	}
	short := func(p Problem) string { return p.Field + ": " + p.Message }
	d := Decision{Allowed: len(wrong) == 0, Warnings: texts(likely, short)}
	if !d.Allowed {
		d.Code, d.Reason = 422, metav1.StatusReasonInvalid
		d.Message = "the policy cannot work: " + strings.Join(texts(wrong, short), "; ")
	}
	return d, nil
}
