package policies

import admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

// GarbageCollector is the user of the built-in collector if kube-controller-manager runs with
// --use-service-account-credentials.
const GarbageCollector = "system:serviceaccount:kube-system:generic-garbage-collector"

// BrakeRules returns the entry for deletes by other garbage collectors. Its failurePolicy is
// Ignore: without Weir they work as always.
func BrakeRules(users []string) WebhookRules {
	return WebhookRules{
		Name: string(WebhookBrake), Webhook: WebhookBrake, FailurePolicy: admissionregistrationv1.Ignore,
		Rules: []admissionregistrationv1.RuleWithOperations{ruleOf(admissionregistrationv1.AllScopes, "*", []string{"*"},
			admissionregistrationv1.Delete)},
		MatchConditions: []admissionregistrationv1.MatchCondition{
			{Name: "is-a-collector", Expression: "request.userInfo.username in " + celList(users)},
			{Name: "not-terminating", Expression: notTerminating},
		},
	}
}
