package e2e

import (
	"context"
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// refuseOfSecrets has the API server refuse an operation on those of the fixture's namespace, by a
// policy of which it returns the name.
func (w *fixture) refuseOfSecrets(operation admissionregistrationv1.OperationType) string {
	w.Helper()
	name, admission := fmt.Sprintf("no-%s-%s", strings.ToLower(string(operation)), w.namespace), w.typed.AdmissionregistrationV1()
	_, err := admission.ValidatingAdmissionPolicies().Create(w.Context(), &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": w.namespace}},
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{operation},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"secrets"}},
				}}},
			},
			Validations: []admissionregistrationv1.Validation{{Expression: "false", Message: "secrets stay as they are"}},
		},
	}, metav1.CreateOptions{})
	if err == nil {
		_, err = admission.ValidatingAdmissionPolicyBindings().Create(w.Context(), &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName: name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
			},
		}, metav1.CreateOptions{})
	}
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { // or else nothing could ever take the finalizer off
		err := admission.ValidatingAdmissionPolicies().Delete(context.WithoutCancel(w.Context()), name, metav1.DeleteOptions{})
		if err != nil {
			w.Error(err)
		}
	})
	return name
}
