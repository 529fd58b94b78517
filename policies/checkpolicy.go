package policies

import (
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/policies/v1beta1"
)

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
