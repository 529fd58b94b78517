package policies

import admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

// GarbageCollector is who the built-in collector is, where kube-controller-manager runs with
// --use-service-account-credentials.
const GarbageCollector = "system:serviceaccount:kube-system:generic-garbage-collector"

// BrakeRules are the entry for what another garbage collector deletes, whoever it is. The
// failurePolicy is Ignore: without Weir it works as it always does.
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
