package e2e

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestPolicyThatFailsAtRunTimeSaysSo: under Ignore a condition that fails for a request lets it pass, and
// nothing in the answer shows it. The policy does: by an Event, with the error, and a count.
func TestPolicyThatFailsAtRunTimeSaysSo(t *testing.T) {
	t.Parallel()
	w := newEnforced(t, companion)
	w.make(`
		cm one
		cm two
	`)
	const kind = "DeletionPolicy"
	name := w.policy(kind, `
  match:
    resources: [{apiGroups: [""], resources: [configmaps]}]
    HERE
    conditions: [{name: at-once, expression: "request.options.gracePeriodSeconds == 0"}]
  protection: {confirmation: Required}`)
	w.awaitCondition(kind, name, "Enforced", metav1.ConditionTrue)
	for _, object := range []string{"one", "two"} {
		w.delete(object, background)
		w.awaitGone(object)
	}
	w.awaitEventOn(kind, name, "PolicyError", "no such key: gracePeriodSeconds", "failurePolicy decides")
	w.until("both requests are counted", func(ctx context.Context) (bool, error) {
		m, err := w.hook.Metrics(ctx)
		return m.Sum("weir_policy_errors_total", "policy", kind+"/"+name) == 2, err
	})
	// The second error within a minute is told later.
	list, err := w.typed.CoreV1().Events(metav1.NamespaceDefault).List(w.Context(), metav1.ListOptions{FieldSelector: "involvedObject.name=" + name + ",reason=PolicyError"})
	if err != nil {
		t.Fatal(err)
	}
	if n := told(list.Items); n != 1 || list.Items[0].Type != "Warning" || list.Items[0].InvolvedObject.UID != w.policyNow(kind, name).GetUID() {
		t.Errorf("%d Events: %+v", n, list.Items)
	}
}
