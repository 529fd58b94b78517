package policies

import (
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// InProcessCanary returns a ValidatingAdmissionPolicy that shows whether the API server applies
// ValidatingAdmissionPolicies. It refuses dry-run deletes of the Lease in a namespace with
// propagation policy Orphan, which the canary of the webhook does not use.
func InProcessCanary(name, namespace string) InProcess {
	ignore, forbidden := admissionregistrationv1.Ignore, metav1.StatusReasonForbidden
	equivalent := admissionregistrationv1.Equivalent
	return inProcessOf(name, admissionregistrationv1.ValidatingAdmissionPolicySpec{
		FailurePolicy: &ignore,
		MatchConstraints: &admissionregistrationv1.MatchResources{
			MatchPolicy:   &equivalent,
			ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: canaryRule()}},
		},
		MatchConditions: []admissionregistrationv1.MatchCondition{{Name: "is-canary",
			Expression: "has(request.dryRun) && request.dryRun && oldObject.metadata.name == " + celString(Canary) +
				" && request.namespace == " + celString(namespace) +
				" && has(request.options.propagationPolicy) && request.options.propagationPolicy == 'Orphan'"}},
		Validations: []admissionregistrationv1.Validation{{Expression: "false", Reason: &forbidden,
			MessageExpression: "'" + name + " judges (' + string(request.options.gracePeriodSeconds) + ')'"}},
	}, []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny})
}

// InProcessAnswer returns the words in which a delete of the canary is refused. The number, which
// the request carries, tells the answer to it from others, and the name tells which canary answers.
func InProcessAnswer(name string, gracePeriodSeconds int64) string {
	return fmt.Sprintf("%s judges (%d)", name, gracePeriodSeconds)
}

// inProcessOf returns a ValidatingAdmissionPolicy and its binding.
func inProcessOf(name string, spec admissionregistrationv1.ValidatingAdmissionPolicySpec,
	actions []admissionregistrationv1.ValidationAction) (out InProcess) {
	out.Admission = &admissionregistrationv1.ValidatingAdmissionPolicy{
		TypeMeta: metav1.TypeMeta{
			APIVersion: admissionregistrationv1.SchemeGroupVersion.String(),
			Kind:       "ValidatingAdmissionPolicy",
		},
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec,
	}
	out.Binding = &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		TypeMeta: metav1.TypeMeta{
			APIVersion: admissionregistrationv1.SchemeGroupVersion.String(),
			Kind:       "ValidatingAdmissionPolicyBinding",
		},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: name, ValidationActions: actions},
	}
	return out
}
