package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestWhyTriesWhatIsRefused: no metadata tells who refuses the request for which an object waits.
// It is tried, and nothing changes.
func TestWhyTriesWhatIsRefused(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	hook := w.newHook(false, named("leaf", refusal(403, 0)))
	w.make(`
		cm  boss
		cm  leaf  owners=(boss!block)
		sec held                       finalizers=(example.com/hold)
	`)
	w.delete("boss", foreground)
	w.delete("held", background)
	hook.awaitSeen("leaf", 1)
	names := []string{"boss", "leaf", "held"}
	versions := w.versions(names)
	why := func(args ...string) string {
		w.Helper()
		return w.mustAsk(append([]string{"why", "--try"}, args...)...)
	}
	leaf, by := "configmaps/"+w.namespace+"/leaf", w.namespace+".example.com"

	w.mustSay(why("cm", "boss"), "Tried, as a dry run:", "to remove the finalizers of configmaps/"+w.namespace+"/boss: accepted", "to delete "+leaf+": accepted")
	w.mustSay(why("cm", "boss", "--as", weirUser, "--as-group", "system:masters"), `a request that has to succeed first, to delete `+leaf+`: admission webhook "`+by+`" denied the request: not today`,
		"Who has to act: whoever runs the admission webhook "+by, "to delete "+leaf+": refused")
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "view-" + w.namespace},
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get", "list"}}}}
	if _, err := w.typed.RbacV1().ClusterRoles().Create(w.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	viewer, err := restricted(w.Context(), w.plane, "viewer-"+w.namespace, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name})
	if err != nil {
		t.Fatal(err)
	}
	out, _, code := w.ask(viewer, "why", "--try", "cm", "boss", "-n", w.namespace)
	w.mustSay(out, "to delete "+leaf+": not permitted, so not tried: ", `cannot delete resource "configmaps"`)
	if code != 0 || strings.Contains(out, "refuses") {
		t.Errorf("exit code %d, and what was not tried was not refused:\n%s", code, out)
	}

	hook.server.Close()
	w.mustSay(why("cm", "boss"), "Who has to act: whoever runs the admission webhook "+by+", which does not answer")

	policy := w.refuseOfSecrets(admissionregistrationv1.Update)
	w.until("the policy is in force", func(context.Context) (bool, error) {
		return strings.Contains(why("secret", "held"), "refuses a request that has to succeed first, to remove the finalizers of secrets/"+w.namespace+"/held: "), nil
	})
	w.mustSay(why("secret", "held"), "1. The finalizer example.com/hold holds it", "Who has to act: whoever wrote the ValidatingAdmissionPolicy "+policy)

	if now := w.versions(names); !slices.Equal(values(now, names), values(versions, names)) {
		t.Errorf("a trial has changed something: %v, and was %v", now, versions)
	}
	hook.remove()
	w.awaitGone("boss", "leaf")
}

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
