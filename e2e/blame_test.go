package e2e

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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
