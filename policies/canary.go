package policies

import (
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/policies/v1beta1"
)

// Canary is the name of the Lease whose dry-run deletes are brought to Weir, and refused, to see
// whether they are. It leases nothing: of all kinds it is the one that the fewest look at.
const Canary = "weir-canary"

// CanaryRules are the entry for the Lease in a namespace. Only with Fail the API server says why it
// could not ask, so the entry must not hold up anything that a user means: dry runs alone come to
// it, of that one object.
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

// canaryRule is about the deletes of Leases.
func canaryRule() admissionregistrationv1.RuleWithOperations {
	return ruleOf(admissionregistrationv1.NamespacedScope, coordinationv1.GroupName, []string{"leases"},
		admissionregistrationv1.Delete)
}

// CanaryAnswer is with which words a delete of the canary is refused. The number that the request
// carries, as its gracePeriodSeconds, tells the answer to it from any other.
func CanaryAnswer(gracePeriodSeconds int64) string {
	return fmt.Sprintf("this dry run is refused so that weir sees whether the API server asks it (%d)", gracePeriodSeconds)
}

// AnswerToCanary is the answer to a request with these options.
func AnswerToCanary(options map[string]any) string {
	n, _ := object(options).at("gracePeriodSeconds").(int64) // the API server lets nothing else past
	return CanaryAnswer(n)
}
