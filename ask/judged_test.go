package ask

import (
	"encoding/json"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/internal/testkit/apitest"
	"github.com/weir-dev/weir/policies/v1beta1"
)

// rule gives the town a DeletionPolicy about ConfigMaps, and a user jo, whom no right lets past it.
func (w *town) rule(spec map[string]any) {
	w.Helper()
	verbs := metav1.Verbs{"list", "watch", "get"}
	w.groups = map[string][]metav1.APIResource{"weir.dev/v1beta1": {
		{Name: "deletionpolicies", SingularName: "deletionpolicy", Kind: "DeletionPolicy", Verbs: verbs},
		{Name: "ownerreferencepolicies", SingularName: "ownerreferencepolicy", Kind: "OwnerReferencePolicy", Verbs: verbs},
		{Name: "drainpolicies", SingularName: "drainpolicy", Kind: "DrainPolicy", Verbs: verbs},
	}}
	reviewed := func(kind string, status map[string]any) *apitest.Reply {
		return &apitest.Reply{Code: 201, Body: map[string]any{"apiVersion": "authentication.k8s.io/v1", "kind": kind, "status": status}}
	}
	w.replies(map[string]*apitest.Reply{
		"/selfsubjectreviews":       reviewed("SelfSubjectReview", map[string]any{"userInfo": map[string]any{"username": "jo", "groups": []any{"system:authenticated"}}}),
		"/selfsubjectaccessreviews": {Code: 201, Body: map[string]any{"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "status": map[string]any{"allowed": false}}},
	})
	match := map[string]any{"resources": []any{map[string]any{"apiGroups": []any{""}, "resources": []any{"configmaps"}}}}
	if conditions, ok := spec["matchConditions"]; ok {
		match["matchConditions"] = conditions
		delete(spec, "matchConditions")
	}
	spec["match"] = match
	text, err := json.Marshal(map[string]any{"apiVersion": "weir.dev/v1beta1", "kind": "DeletionPolicy", "metadata": map[string]any{"name": "maps"}, "spec": spec})
	if err != nil {
		w.Fatal(err)
	}
	w.api.Put("deletionpolicies", string(text))
}

// TestPoliciesAreAskedAboutWhatIsAsked: a plan and an answer say what a policy does with the delete
// of an object, and what it changes about it.
func TestPoliciesAreAskedAboutWhatIsAsked(t *testing.T) {
	const refused = `✗ configmaps/shop/boss: a policy refuses the delete: configmaps "boss" in namespace "shop" may not be deleted`
	for name, c := range map[string]struct {
		spec     map[string]any
		args     string
		code     int      // of the plan
		plan     []string // what it says
		why, not string   // what the answer says, and what it does not
	}{
		"protection refuses": {map[string]any{"protection": map[string]any{"maxDependents": 1}}, "", exitStuck,
			[]string{refused + ": 2 objects would also be deleted, and the policy allows 1", "Plan: policies refuse it; without them 3 objects are deleted in 3 steps."},
			"A policy refuses to have you delete it: ", ""},
		"protection accepts as many": {map[string]any{"protection": map[string]any{"maxDependents": 2}}, "", 0,
			[]string{"Plan: 3 objects are deleted in 3 steps."}, "Nothing owns it", "policy"},
		"protection that warns": {map[string]any{"protection": map[string]any{"maxDependents": 0}, "validationActions": []any{"Warn"}}, "", 0,
			[]string{"⚠ configmaps/shop/boss: ", "and the policy allows none", "Plan: 3 objects are deleted in 3 steps."}, "Nothing owns it", "refuses"},
		"a propagation that is not allowed": {map[string]any{"propagation": map[string]any{"allowed": []any{"Orphan"}}}, "", exitStuck,
			[]string{refused + " with propagation policy Background: allowed is Orphan"}, "allowed is Orphan", ""},
		"a propagation that is allowed": {map[string]any{"propagation": map[string]any{"allowed": []any{"Orphan"}}}, " --cascade=orphan", 0,
			[]string{"Plan: 1 object is deleted in 2 steps, 1 is kept and loses a reference."}, "allowed is Orphan", ""},
		"a default that is another": {map[string]any{"propagation": map[string]any{"default": "Orphan"}}, "", 0,
			[]string{"is deleted with propagation Orphan, not Background", "orphan by policy maps", "Plan: 1 object is deleted in 2 steps, 1 is kept"}, "Nothing owns it", "refuses"},
		"a brake": {map[string]any{"brake": map[string]any{"maxObjects": 1}}, "", exitStuck,
			[]string{"is held until a person decides (kubectl get held requested.configmaps)"}, "Nothing owns it", "refuses"},
		"a policy that is broken": {map[string]any{"protection": map[string]any{}}, "", exitIncomplete,
			[]string{"a policy may change this: DeletionPolicy \"maps\": the policy is broken: ", "In doubt: what policies say about 3 of the deletions."}, "Nothing owns it", "refuses"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTown(t)
			w.rule(c.spec)
			plan, why := w.run(strings.Fields("plan cm boss --exit-code"+c.args)...), w.run("why", "cm", "boss")
			if plan.code() != c.code || why.failed != nil || plan.err+why.err != "" {
				t.Errorf("exit code %d, want %d (%v, %v): %s%s", plan.code(), c.code, plan.failed, why.failed, plan.err, why.err)
			}
			for _, want := range c.plan {
				if !strings.Contains(plan.out, want) {
					t.Errorf("the plan does not say %q:\n%s", want, plan.out)
				}
			}
			if !strings.Contains(why.out, c.why) || c.not != "" && strings.Contains(why.out, c.not) {
				t.Errorf("want %q, and not %q:\n%s", c.why, c.not, why.out)
			}
		})
	}
}

// TestWhatABrakeHoldsIsPlanned: what was asked for and is held is found by Weir's finalizer and by
// what policies say now, with all that goes with it.
func TestWhatABrakeHoldsIsPlanned(t *testing.T) {
	w := newTown(t)
	w.rule(map[string]any{"brake": map[string]any{"maxObjects": 1}})
	held := ", deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: [" + v1beta1.Finalizer + "]"
	w.put("boss", "", held)
	w.put("alone", "", held)
	for _, held := range []string{"requested.configmaps", "requested.secrets", "configmaps"} {
		w.hold(held, string(v1beta1.HeldForRequest), "feed")
	}
	s := w.run("held", "requested.configmaps", "-o", "json")
	if want, got := "configmaps/shop/boss\nconfigmaps/shop/leaf\nconfigmaps/shop/twig\n", s.goes(t); got != want {
		t.Errorf("it plans %q, want %q (%v)", got, want, s.failed)
	}
	for _, other := range []string{"requested.secrets", "configmaps"} {
		if s := w.run("held", other); s.failed != nil || !strings.Contains(s.out, "Plan: nothing is deleted.") {
			t.Errorf("%s: %s (%v)", other, s.out, s.failed)
		}
	}
}
