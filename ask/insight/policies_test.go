package insight

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/policies/v1beta1"
)

// All policies are shown, those that are files, too, each with its last error,
// which is of Weir's own Event.
func TestPoliciesAreShownWithWhatIsWrong(t *testing.T) {
	status := func(matched int64, conditions ...metav1.Condition) v1beta1.DeletionPolicyStatus {
		return v1beta1.DeletionPolicyStatus{PolicyStatus: v1beta1.PolicyStatus{Matched: &matched, Conditions: conditions}}
	}
	is := func(condition string, status metav1.ConditionStatus, message string) metav1.Condition {
		return metav1.Condition{Type: condition, Status: status, Message: message}
	}
	event := func(component, reason, name, message string, at time.Duration) corev1.Event {
		return corev1.Event{Reason: reason, Message: message, Source: corev1.EventSource{Component: component},
			InvolvedObject: corev1.ObjectReference{Kind: "DeletionPolicy", Name: name}, LastTimestamp: metav1.NewTime(time.Unix(0, 0).Add(at))}
	}
	all := []v1beta1.FilePolicy{
		{Kind: "OwnerReferencePolicy", Name: "owners", Spec: map[string]any{"blockOwnerDeletion": "Deny", "changes": "Allow", "validationActions": []any{"Warn", "Audit"}}},
		{Kind: "DrainPolicy", Name: "order", Spec: map[string]any{"waves": []any{1, 2}}, Status: status(3, is("Ready", "True", ""), is("Enforced", "False", "not reached"))},
		{Kind: "DeletionPolicy", Name: "guard", File: "/etc/guard.yaml", Spec: map[string]any{"protection": map[string]any{}}, Status: status(1, is("Ready", "True", ""))},
		{Kind: "DeletionPolicy", Name: "default", Spec: map[string]any{"propagation": map[string]any{"default": "Orphan"}, "protection": map[string]any{}},
			Status: status(7, is("Ready", "True", ""))},
	}
	events := []corev1.Event{
		event("weir", "PolicyError", "default", "the last\none", 2*time.Minute), event("weir", "PolicyError", "default", "before", time.Minute),
		event("mallory", "PolicyError", "default", "of somebody else", time.Hour), event("weir", "Invalid", "default", "another reason", time.Hour),
		event("weir", "PolicyError", "guard", "of an object with the name of a file's", time.Hour),
	}
	var out strings.Builder
	if err := DrawPolicies(&out, Policies(all, events)); err != nil {
		t.Fatal(err)
	}
	want := `
KIND                   NAME      FROM              READY   ENFORCED   MATCHED   LAST ERROR
DeletionPolicy         default   object            True    -          7         the last\none
DeletionPolicy         guard     /etc/guard.yaml   True    -          1         -
DrainPolicy            order     object            True    False      3         Enforced: not reached
OwnerReferencePolicy   owners    object            -       -          -         -
`
	if diff := cmp.Diff(strings.TrimPrefix(want, "\n"), out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	out.Reset()
	if err := DrawPolicies(&out, nil); err != nil || out.String() != "There is no policy.\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
}
