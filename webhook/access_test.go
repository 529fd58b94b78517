package webhook

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/weir-dev/weir/internal/testkit/apitest"
)

const asks = `{apiVersion: weir.dev/v1beta1, kind: OwnerReferencePolicy, metadata: {name: asked}, spec: {match: {resources: [{apiGroups: [""], resources: [pods]}]}, changes: RequirePermission}}`

// edits is an UPDATE by a user that changes the references of a Pod.
func edits(user, pod string) string {
	return fmt.Sprintf(`{operation: UPDATE, resource: {version: v1, resource: pods}, kind: {version: v1, kind: Pod}, namespace: shop, name: %[2]s, userInfo: {username: %[1]s},
oldObject: {metadata: {name: %[2]s, namespace: shop}}, object: {metadata: {name: %[2]s, namespace: shop, ownerReferences: [{apiVersion: v1, kind: Pod, name: b, uid: b}]}}}`, user, pod)
}

// allowed asks whether an edit is.
func (b *fixture) allowed(request string) bool {
	b.Helper()
	code, body := b.ask("owners", request)
	var out admissionv1.AdmissionReview
	if err := json.Unmarshal(body, &out); err != nil || code != 200 {
		b.Fatalf("%d %s", code, body)
	}
	return out.Response.Allowed
}

func TestAnswersAboutAccessAreRememberedBriefly(t *testing.T) {
	for _, c := range []struct {
		granted bool
		within  time.Duration
	}{{true, rememberGranted}, {false, rememberRefused}} {
		withFixture(t, func(b *fixture) {
			b.policies(asks)
			if c.granted {
				b.grant("alice delete pods")
			}
			for _, step := range []struct {
				wait  time.Duration
				user  string
				pod   string
				asked int
			}{
				{0, "alice", "a", 1}, {c.within - time.Millisecond, "alice", "a", 0},
				{2 * time.Millisecond, "alice", "a", 1}, // not used, it would have been forgotten as well
				{0, "alice", "b", 1}, {0, "bob", "a", 1},
			} {
				elapse(step.wait)
				b.asked()
				if got := b.allowed(edits(step.user, step.pod)); got != (c.granted && step.user == "alice") {
					b.Errorf("%s, granted=%t: allowed=%t", step.user, c.granted, got)
				}
				if n := len(b.asked()); n != step.asked {
					b.Errorf("%s about %s, granted=%t, after %s: asked %d times, want %d",
						step.user, step.pod, c.granted, step.wait, n, step.asked)
				}
			}
		})
	}
}

func TestAccessThatCannotBeFoundOutIsNeverGranted(t *testing.T) {
	for name, reply := range map[string]*apitest.Reply{
		"the API server fails":      apitest.Refuse(500, "InternalError", "etcd is away"),
		"Weir may not ask":          apitest.Refuse(403, "Forbidden", "weir may not create subjectaccessreviews"),
		"the answer makes no sense": {Code: 201, Body: "yes"},
	} {
		t.Run(name, func(t *testing.T) {
			withFixture(t, func(b *fixture) {
				b.policies(asks)
				b.grant("alice delete pods")
				b.refuseAccess(reply)
				for range 2 { // what was not answered is not remembered either
					code, body := b.ask("owners", edits("alice", "a"))
					if code != 500 || !strings.HasPrefix(string(body), `ask what user "alice" may do: `) {
						b.Errorf("%d %s", code, body)
					}
				}
				b.refuseAccess(nil)
				if !b.allowed(edits("alice", "a")) {
					b.Error("refused when it can be found out")
				}
			})
		})
	}
}

// A review waits for the API server no longer than the API server waits for it.
func TestAccessReviewsEndWithTheirReview(t *testing.T) {
	withFixture(t, func(b *fixture) {
		b.policies(asks)
		b.api.Intercept(func(r apitest.Request) *apitest.Reply {
			if strings.HasSuffix(r.Path, "/subjectaccessreviews") {
				return apitest.Refuse(503, "ServiceUnavailable", "starting")
			}
			return nil
		})
		began := time.Now()
		code, body := b.ask("owners", edits("alice", "a"))
		if took := time.Since(began); code != 500 || took > 9*time.Second {
			b.Errorf("%d after %s: %s", code, took, body)
		}
	})
}

// A user can write ten thousand references. That must neither hold up Weir, nor be a way past the
// policy.
func TestRequestThatDependsOnTooManyPermissionsIsRefused(t *testing.T) {
	t.Run("by a policy that denies", func(t *testing.T) { tooManyPermissions(t, "[Deny]", `"allowed":false`) })
	t.Run("not by one on trial", func(t *testing.T) { tooManyPermissions(t, "[Warn]", `"allowed":true`) })
}

// TestPolicyOnTrialThatAsksTooMuchLetsNothingPast what others refuse: one that asks for permissions
// itself, and one that asks for nothing.
func TestPolicyOnTrialThatAsksTooMuchLetsNothingPast(t *testing.T) {
	trial := `{apiVersion: weir.dev/v1beta1, kind: OwnerReferencePolicy, metadata: {name: trial}, spec: {match: {resources: [{apiGroups: [""], resources: [pods]}]}, blockOwnerDeletion: RequirePermission, validationActions: [Warn]`
	for name, tt := range map[string]struct {
		policies []string
		want     string
	}{
		"another policy wants permission":   {[]string{asks, trial + `}}`}, "may be changed only by a user who may delete it"},
		"another policy has a rule":         {[]string{`{apiVersion: weir.dev/v1beta1, kind: OwnerReferencePolicy, metadata: {name: one}, spec: {match: {resources: [{apiGroups: [""], resources: [pods]}]}, rules: {manyControllers: Deny}}}`, trial + `}}`}, "have controller: true, and only one owner may have it"},
		"a rule of the same policy refuses": {[]string{trial + `, rules: {manyControllers: Deny}}}`}, "have controller: true, and only one owner may have it"},
	} {
		t.Run(name, func(t *testing.T) {
			withFixture(t, func(b *fixture) {
				b.policies(strings.Join(tt.policies, "\n---\n"))
				refs := []string{"{apiVersion: apps/v1, kind: Deployment, name: a, uid: a, controller: true}",
					"{apiVersion: apps/v1, kind: Deployment, name: b, uid: b, controller: true}"}
				for i := range mostAccess {
					refs = append(refs,
						fmt.Sprintf("{apiVersion: apps/v1, kind: Deployment, name: d%[1]d, uid: u%[1]d, blockOwnerDeletion: true}", i))
				}
				code, body := b.ask("owners", `{operation: UPDATE, resource: {group: "", version: v1, resource: pods}, kind: {group: "", version: v1, kind: Pod}, namespace: shop, name: web, userInfo: {username: alice},
  oldObject: {apiVersion: v1, kind: Pod, metadata: {name: web, namespace: shop, uid: w}},
  object: {apiVersion: v1, kind: Pod, metadata: {name: web, namespace: shop, uid: w, ownerReferences: [`+strings.Join(refs, ", ")+`]}}}`)
				for _, want := range []string{`"allowed":false`, tt.want, "permissions of yours, and at most 64 are looked up"} {
					if code != 200 || !strings.Contains(string(body), want) {
						b.Errorf("%d %.900s\nwant %s", code, body, want)
					}
				}
			})
		})
	}
}

func tooManyPermissions(t *testing.T, actions, verdict string) {
	t.Helper()
	withFixture(t, func(b *fixture) {
		b.policies(`{apiVersion: weir.dev/v1beta1, kind: OwnerReferencePolicy, metadata: {name: ask}, spec: {match: {resources: [{apiGroups: [apps], resources: [replicasets]}]}, blockOwnerDeletion: RequirePermission, validationActions: ` + actions + `}}`)
		for n, want := range map[int]string{mostAccess - 1: "may not update deployments/finalizers",
			mostAccess: "depends on 65 permissions of yours, and at most 64"} {
			var refs []string
			for i := range n {
				refs = append(refs,
					fmt.Sprintf("{apiVersion: apps/v1, kind: Deployment, name: d%[1]d, uid: u%[1]d, blockOwnerDeletion: true}", i))
			}
			b.asked()
			code, body := b.ask("owners", `{operation: CREATE, resource: {group: apps, version: v1, resource: replicasets}, kind: {group: apps, version: v1, kind: ReplicaSet}, namespace: shop, name: web, userInfo: {username: alice},
  object: {apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: web, namespace: shop, ownerReferences: [`+strings.Join(refs, ", ")+`]}}}`)
			if code != 200 || !strings.Contains(string(body), verdict) || !strings.Contains(string(body), want) {
				b.Errorf("%d references: %d %.600s\nwant %s", n, code, body, want)
			}
			if asked := len(b.asked()); asked > mostAccess {
				b.Errorf("%d references: %d requests", n, asked)
			}
		}
	})
}
