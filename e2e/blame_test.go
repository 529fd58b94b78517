package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestPolicyThatFailsAtRunTimeSaysSo: under Ignore a condition that fails for a request lets it
// pass, and nothing in the answer shows it. The policy does: by an Event, with the error, and a
// count.
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
    matchConditions: [{name: at-once, expression: "request.options.gracePeriodSeconds == 0"}]
  protection: {confirmation: Required}`)
	w.awaitCondition(kind, name, "Enforced", metav1.ConditionTrue)
	for _, object := range []string{"one", "two"} {
		w.delete(object, background)
		w.awaitGone(object)
	}
	w.awaitEventOn(kind, name, "PolicyError", "at-once\": no such key", "failurePolicy decides")
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

// TestWhoWritesPoliciesReadsNoSecrets: the status of policies and Events on them are read by people
// who may not read Secrets. Neither quotes one, and no number there answers what a condition asks.
func TestWhoWritesPoliciesReadsNoSecrets(t *testing.T) {
	t.Parallel()
	w := newEnforced(t, companion)
	const kind, value = "DeletionPolicy", "aHVudGVyMg==" // as it is stored
	w.mustKubectl("create", "secret", "generic", "keys", "--from-literal=password=hunter2")
	name := w.policy(kind, `
  match:
    resources: [{apiGroups: [""], resources: [secrets]}]
    HERE
    matchConditions: [{name: asks, expression: "ip(string(oldObject.data.password)).family() == 4"}]
  propagation: {default: Orphan}
  protection: {confirmation: Required}`)
	w.awaitCondition(kind, name, "Evaluates", metav1.ConditionUnknown)
	w.awaitCondition(kind, name, "BackFilled", metav1.ConditionTrue)
	w.awaitCondition(kind, name, "Enforced", metav1.ConditionTrue)
	w.mustKubectl("delete", "secret", "keys")
	w.awaitEventOn(kind, name, "PolicyError", `condition "asks"`, "not shown")
	if status := w.policyNow(kind, name).Object["status"].(map[string]any); status["matched"] != nil || status["withFinalizer"] != nil || strings.Contains(fmt.Sprint(status), value) {
		t.Errorf("the status tells of a Secret: %v", status)
	}
	list, err := w.typed.CoreV1().Events(metav1.NamespaceDefault).List(w.Context(), metav1.ListOptions{FieldSelector: "involvedObject.name=" + name})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list.Items {
		if strings.Contains(e.Message, value) {
			t.Errorf("an Event tells of a Secret: %s", e.Message)
		}
	}
}
