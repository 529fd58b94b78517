package policies

import (
	"fmt"

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
	return ownInProcess(InProcessGuardName, admissionregistrationv1.Fail,
		ruleOf(admissionregistrationv1.ClusterScope, admissionregistrationv1.GroupName,
			[]string{"mutatingwebhookconfigurations", "validatingwebhookconfigurations"},
			admissionregistrationv1.Update, admissionregistrationv1.Delete),
		admissionregistrationv1.Validation{
			Expression: "request.operation == 'UPDATE' && !(" + changed("ownerReferences") + ") && " +
				"has(object.webhooks) == has(oldObject.webhooks) && " +
				"(!has(object.webhooks) || object.webhooks == oldObject.webhooks)",
			Message: "Only Weir may change its webhook configurations: without them its policies are not enforced. " +
				"To change or delete them anyway, stop Weir's controller, which would write them again, then " + ByForce,
		},
		admissionregistrationv1.MatchCondition{Name: "is-weirs",
			Expression: "oldObject.metadata.name == " + celString(WebhookConfigurations)},
		admissionregistrationv1.MatchCondition{Name: "not-system", Expression: s.notSystem()},
		admissionregistrationv1.MatchCondition{Name: "not-controllers", Expression: notControllers(nil)})
}

// InProcessCanary returns a ValidatingAdmissionPolicy that shows whether the API server applies
// ValidatingAdmissionPolicies. It refuses dry-run deletes of the Lease in a namespace with
// propagation policy Orphan, which the canary of the webhook does not use.
func InProcessCanary(name, namespace string) InProcess {
	return ownInProcess(name, admissionregistrationv1.Ignore, canaryRule(),
		admissionregistrationv1.Validation{Expression: "false",
			MessageExpression: "'" + name + " judges (' + string(request.options.gracePeriodSeconds) + ')'"},
		admissionregistrationv1.MatchCondition{Name: "is-canary",
			Expression: "has(request.dryRun) && request.dryRun && oldObject.metadata.name == " + celString(Canary) +
				" && request.namespace == " + celString(namespace) +
				" && has(request.options.propagationPolicy) && request.options.propagationPolicy == 'Orphan'"})
}

// InProcessAnswer returns the words in which a delete of the canary is refused. The number, which
// the request carries, tells the answer to it from others, and the name tells which canary answers.
func InProcessAnswer(name string, gracePeriodSeconds int64) string {
	return fmt.Sprintf("%s judges (%d)", name, gracePeriodSeconds)
}

// ownInProcess returns what is of no policy, and refuses requests that match a rule and conditions.
func ownInProcess(name string, fails admissionregistrationv1.FailurePolicyType,
	rule admissionregistrationv1.RuleWithOperations, refuses admissionregistrationv1.Validation,
	conditions ...admissionregistrationv1.MatchCondition) InProcess {
	refuses.Reason = new(metav1.StatusReasonForbidden)
	return inProcessOf(name, admissionregistrationv1.ValidatingAdmissionPolicySpec{
		FailurePolicy: &fails,
		MatchConstraints: &admissionregistrationv1.MatchResources{MatchPolicy: new(admissionregistrationv1.Equivalent),
			ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: rule}}},
		MatchConditions: conditions,
		Validations:     []admissionregistrationv1.Validation{refuses},
	}, []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny})
}

// inProcessOf returns a ValidatingAdmissionPolicy and its binding.
func inProcessOf(name string, spec admissionregistrationv1.ValidatingAdmissionPolicySpec,
	actions []admissionregistrationv1.ValidationAction) InProcess {
	is := func(kind string) metav1.TypeMeta {
		return metav1.TypeMeta{APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: kind}
	}
	return InProcess{
		Admission: &admissionregistrationv1.ValidatingAdmissionPolicy{TypeMeta: is("ValidatingAdmissionPolicy"),
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec},
		Binding: &admissionregistrationv1.ValidatingAdmissionPolicyBinding{TypeMeta: is("ValidatingAdmissionPolicyBinding"),
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: name,
				ValidationActions: actions}},
	}
}
