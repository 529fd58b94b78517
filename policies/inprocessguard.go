package policies

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// InProcessGuardName is the name of the ValidatingAdmissionPolicy that protects Weir's webhook
// configurations.
const InProcessGuardName = "weir-guard"

// ByForce is the way past the guard.
const ByForce = "kubectl delete validatingadmissionpolicybinding " + InProcessGuardName +
	", which the API server notices within a few seconds"

// InProcessGuard refuses changes of the webhooks and owners in Weir's webhook configurations,
// except by users whom no policy judges. Nothing can guard it and its binding in turn: the API
// server applies no policy to these, so there is always a way past it.
func (s *Set) InProcessGuard() InProcess {
	fails, forbidden := admissionregistrationv1.Fail, metav1.StatusReasonForbidden
	equivalent := admissionregistrationv1.Equivalent
	return inProcessOf(InProcessGuardName, admissionregistrationv1.ValidatingAdmissionPolicySpec{
		FailurePolicy: &fails,
		MatchConstraints: &admissionregistrationv1.MatchResources{
			MatchPolicy: &equivalent,
			ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: ruleOf(
				admissionregistrationv1.ClusterScope, admissionregistrationv1.GroupName,
				[]string{"mutatingwebhookconfigurations", "validatingwebhookconfigurations"},
				admissionregistrationv1.Update, admissionregistrationv1.Delete)}},
		},
		MatchConditions: []admissionregistrationv1.MatchCondition{
			{Name: "is-weirs", Expression: "oldObject.metadata.name == " + celString(WebhookConfigurations)},
			{Name: "not-system", Expression: s.notSystem()},
			{Name: "not-controllers", Expression: notControllers(nil)},
		},
		Validations: []admissionregistrationv1.Validation{{
			Expression: "request.operation == 'UPDATE' && !(" + changed("", "ownerReferences").Expression + ") && " +
				"has(object.webhooks) == has(oldObject.webhooks) && " +
				"(!has(object.webhooks) || object.webhooks == oldObject.webhooks)",
			Message: "Only Weir may change its webhook configurations: without them its policies are not enforced. " +
				"To change or delete them anyway, stop Weir's controller, which would write them again, then " + ByForce,
			Reason: &forbidden,
		}},
	}, []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny})
}
