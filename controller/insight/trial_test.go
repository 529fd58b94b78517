package insight

import (
	"strings"
	"testing"
)

func TestRefusalsNameWhoRefuses(t *testing.T) {
	for _, c := range []struct {
		code          int
		message       string
		refused       bool
		actor, isTold string
	}{
		{code: 200, isTold: "accepted"},
		{code: 403, message: `admission webhook "guard.example.com" denied the request: not on Fridays`, refused: true, actor: "who runs the admission webhook guard.example.com", isTold: "refused"},
		{code: 500, message: `Internal error occurred: failed calling webhook "away.example.com": failed to call webhook: Post "https://10.0.0.1/": connection refused`, refused: true,
			actor: "who runs the admission webhook away.example.com, which does not answer", isTold: "refused"},
		{code: 422, message: `configmaps "x" is forbidden: ValidatingAdmissionPolicy 'no-edits' with binding 'b' denied request: no`, refused: true, actor: "who wrote the ValidatingAdmissionPolicy no-edits", isTold: "refused"},
		{code: 500, message: `conversion webhook for example.com/v1, Kind=Gizmo failed: Post "https://c.example.svc:443/": no endpoints`, refused: true,
			actor: "who runs the conversion webhook of example.com/v1, Kind=Gizmo", isTold: "refused"},
		{code: 422, message: `Gizmo "x" is invalid: spec.size: Required value`, refused: true, actor: "whoever the message names", isTold: "refused"},
		{code: 403, message: `configmaps "x" is forbidden: User "eve" cannot patch resource "configmaps" in API group "" in the namespace "shop"`, isTold: "not permitted, so not tried: configmaps"},
		{code: 400, message: `admission webhook "old.example.com" does not support dry run`, isTold: "cannot be tried: admission webhook"},
		{code: 404, message: "not found", isTold: "it has changed meanwhile, or is gone"},
		{code: 409, message: "the UID in the precondition", isTold: "it has changed meanwhile, or is gone"},
		{code: 429, message: "too many requests", isTold: "not answered: too many"},
		{code: 0, message: "connection refused", isTold: "not answered: connection refused"},
	} {
		trial := Trial{Object: Object{Kind: "configmaps", Namespace: "shop", Name: "x"}, Request: Unfinalize}
		trial.Answered(c.code, c.message)
		cause, ok := trial.Cause()
		if ok != c.refused || cause.Actor != c.actor || c.refused && !strings.Contains(cause.What, "finalizers off of configmaps/shop/x: "+c.message) {
			t.Errorf("%d %s: refused %v, %q\n%s", c.code, c.message, ok, cause.Actor, cause.What)
		}
		if told := trial.told(); !strings.HasPrefix(told, "configmaps/shop/x: finalizers off: "+c.isTold) {
			t.Errorf("%d %s is told as %q", c.code, c.message, told)
		}
	}
}
