package e2e

import (
	"context"
	"strconv"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestPolicyThatLetsOnlyTheBuiltInCollectorsThrough refuses Weir in their place, and then objects
// and namespaces stay. The doctor finds it, why names it and no controller, and all goes once it
// names Weir, too.
func TestPolicyThatLetsOnlyTheBuiltInCollectorsThrough(t *testing.T) {
	t.Parallel()
	w := newEnforced(t, replace)
	w.make(`
		cm  boss
		sec leaf owners=(boss)
	`)
	name := w.refuseOfSecrets(admissionregistrationv1.Delete)
	lets := func(condition string) {
		w.Helper()
		_, err := w.typed.AdmissionregistrationV1().ValidatingAdmissionPolicies().Patch(t.Context(), name, types.MergePatchType,
			[]byte(`{"spec":{"validations":[{"expression":`+strconv.Quote(condition)+`,"message":"secrets stay as they are"}]}}`), metav1.PatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	const prefix = `request.userInfo.username.startsWith("system:serviceaccount:kube-system:")`
	lets(prefix)
	w.until("deletes are refused", func(ctx context.Context) (bool, error) {
		err := w.at(w.of("leaf")).Delete(ctx, "leaf", metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil && strings.Contains(err.Error(), "secrets stay as they are"), nil
	})
	w.delete("boss", background)
	w.awaitEvent("leaf", "CollectionRefused")
	w.mustSay(w.mustAsk("why", "secret", "leaf"), "1. Its owners are gone, so it will be deleted",
		"Who has to act: whoever wrote the ValidatingAdmissionPolicy "+name)
	out, _ := w.command("doctor", "--kubeconfig", w.plane.Kubeconfig, "-n", "weir-system", "--mode", "replace")
	w.mustSay(out, "ValidatingAdmissionPolicy/"+name+"  its conditions name system:serviceaccount:kube-system: and not Weir's controller",
		"let the user system:serviceaccount:weir-system:weir-controller through as well")

	uid := w.drop()
	w.until("why names the policy", func(context.Context) (bool, error) {
		first, _, _ := strings.Cut(w.mustAsk("why", "namespace", w.namespace), "\n\n2. ")
		return strings.Contains(first, "1. Content is left in the namespace: 1 secrets") &&
			strings.Contains(first, "Who has to act: whoever wrote the ValidatingAdmissionPolicy "+name), nil
	})
	lets(prefix + ` || request.userInfo.username == "` + weirUser + `"`)
	w.awaitDropped(uid)
}
