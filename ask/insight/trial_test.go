package insight

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestWhatTheUserMayNotDoIsRefusedWhereItIsTriedAsThatUser: it is the collector's rights that are
// asked about then, and not yours.
func TestWhatTheUserMayNotDoIsRefusedWhereItIsTriedAsThatUser(t *testing.T) {
	trial := Trial{Object: Object{Kind: "configmaps", Namespace: "shop", Name: "x"}, Request: Delete, As: "collector"}
	trial.Answered(metav1.StatusReasonForbidden, `configmaps "x" is forbidden: User "collector" cannot delete resource "configmaps" in API group "" in the namespace "shop"`)
	if cause, ok := trial.Cause(); !ok || cause.Actor != "whoever grants the user collector its rights (RBAC)" {
		t.Errorf("refused %v, %q", ok, cause.Actor)
	}
	trial = Trial{As: "collector"}
	trial.Answered(metav1.StatusReasonForbidden, `users "collector" is forbidden: User "anna" cannot impersonate resource "users" in API group "" at the cluster scope`)
	if _, ok := trial.Cause(); ok {
		t.Error("that you may not impersonate the collector says nothing about what it may do")
	}
}

func TestRefusalsNameWhoRefuses(t *testing.T) {
	for _, c := range []struct {
		reason        metav1.StatusReason
		message       string
		refused       bool
		actor, isTold string
	}{
		{isTold: "accepted"},
		{reason: metav1.StatusReasonForbidden, message: `admission webhook "guard.example.com" denied the request: not on Fridays`, refused: true, actor: "whoever runs the admission webhook guard.example.com", isTold: "refused"},
		{reason: metav1.StatusReasonInternalError, message: `Internal error occurred: failed calling webhook "away.example.com": failed to call webhook: Post "https://10.0.0.1/": connection refused`, refused: true,
			actor: "whoever runs the admission webhook away.example.com, which does not answer", isTold: "refused"},
		{reason: metav1.StatusReasonInvalid, message: `configmaps "x" is forbidden: ValidatingAdmissionPolicy 'no-edits' with binding 'b' denied request: no`, refused: true, actor: "whoever wrote the ValidatingAdmissionPolicy no-edits", isTold: "refused"},
		{reason: metav1.StatusReasonInternalError, message: `conversion webhook for example.com/v1, Kind=Gizmo failed: Post "https://c.example.svc:443/": no endpoints`, refused: true,
			actor: "whoever runs the conversion webhook of example.com/v1, Kind=Gizmo", isTold: "refused"},
		{reason: metav1.StatusReasonInvalid, message: `Gizmo "x" is invalid: spec.size: Required value`, refused: true,
			actor: `whoever makes Gizmo "x" valid again: its writer, or whoever writes the schema of its kind`, isTold: "refused"},
		{reason: metav1.StatusReasonForbidden, message: `configmaps "x" is forbidden: User "eve" cannot patch resource "configmaps" in API group "" in the namespace "shop"`, isTold: "not permitted, so not tried: configmaps"},
		{reason: metav1.StatusReasonBadRequest, message: `admission webhook "old.example.com" does not support dry run`, isTold: "cannot be tried: admission webhook"},
		{reason: metav1.StatusReasonNotFound, message: `namespaces "shop" not found`, refused: true, isTold: "refused",
			actor: "whoever may create namespaces: kubectl create namespace shop lets the deletion go on"},
		{reason: metav1.StatusReasonNotFound, message: "not found", isTold: "it has changed meanwhile, or is gone"},
		{reason: metav1.StatusReasonConflict, message: "the UID in the precondition", isTold: "it has changed meanwhile, or is gone"},
		{reason: metav1.StatusReasonTooManyRequests, message: "too many requests", isTold: "not answered: too many"},
		{reason: NoAnswer, message: "connection refused", isTold: "not answered: connection refused"},
		{reason: metav1.StatusReasonConflict, message: `admission webhook "guard.example.com" denied the request: not found here`, refused: true, actor: "whoever runs the admission webhook guard.example.com", isTold: "refused"},
		{message: "an answer without a reason", refused: true, actor: unnamed, isTold: "refused"},
	} {
		trial := Trial{Object: Object{Kind: "configmaps", Namespace: "shop", Name: "x"}, Request: Unfinalize}
		trial.Answered(c.reason, c.message)
		cause, ok := trial.Cause()
		if ok != c.refused || cause.Actor != c.actor || c.refused && !strings.Contains(cause.What, "to remove the finalizers of configmaps/shop/x: "+c.message) {
			t.Errorf("%s %s: refused %v, %q\n%s", c.reason, c.message, ok, cause.Actor, cause.What)
		}
		if told := trial.told(); !strings.HasPrefix(told, "to remove the finalizers of configmaps/shop/x: "+c.isTold) {
			t.Errorf("%s %s is told as %q", c.reason, c.message, told)
		}
	}
}
