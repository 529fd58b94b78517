package policies

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// [Warn] and [Audit] never refuse, whatever there would be to refuse, and whatever goes wrong.
func TestTrialRefusesNothing(t *testing.T) {
	for name, c := range map[string]struct{ rest, says string }{
		"confirmation":              {"protection: {confirmation: Required}", `deployments.apps "web" in namespace "shop" may not be deleted without confirmation`},
		"a condition that fails":    {"protection: {confirmation: Required}, failurePolicy: Fail, match: {matchConditions: [{name: c, expression: 'oldObject.metadata.none == 1'}]}", "cannot be judged, and the policy's failurePolicy is Fail"},
		"a count that is not known": {"protection: {maxDependents: 3}, failurePolicy: Fail", "the ownership graph is not known yet"},
		"what may be asked for":     {"propagation: {allowed: [Orphan]}", "may not be deleted with propagation policy Background: allowed is Orphan"},
	} {
		for actions, where := range map[string]string{"[Warn]": "warnings", "[Audit]": "audited", "[Warn, Audit]": "both", "[Deny]": "message"} {
			text := delpol("p", strings.Split(c.rest, ", match:")[0]+", validationActions: "+actions)
			if _, match, ok := strings.Cut(c.rest, ", match: {"); ok {
				text = strings.Replace(text, "resources: [deployments]}]", "resources: [deployments]}], "+strings.TrimSuffix(match, "}"), 1)
			}
			set := Build(nil, sources(t, "f", text), Options{})
			q := web(nil)
			q.Options, q.Facts = map[string]any{"propagationPolicy": "Background"}, Facts{}
			d := set.Decide(q)
			warned, audited := strings.Join(d.Warnings, "\n"), d.Audit[AuditAudited]
			switch ok := d.Allowed && d.Code == 0; {
			case where == "message":
				if d.Allowed || !strings.Contains(d.Message, c.says) {
					t.Errorf("%s %s: %+v", name, actions, d)
				}
			case !ok:
				t.Errorf("%s %s: refused: %s", name, actions, d.Message)
			case strings.Contains(warned, c.says) != (where != "audited"), strings.Contains(audited, c.says) != (where != "warnings"):
				t.Errorf("%s %s: warned %q, audited %q", name, actions, warned, audited)
			}
		}
	}
}

// The API server must not refuse either, because Weir is down.
func TestTrialIsAskedUnderIgnore(t *testing.T) {
	for actions, want := range map[string]admissionregistrationv1.FailurePolicyType{"[Deny]": "Fail", "[Warn]": "Ignore", "[Audit]": "Ignore"} {
		set := Build(nil, sources(t, "f", delpol("p", "protection: {confirmation: Required}, failurePolicy: Fail, validationActions: "+actions)+
			"---\n{apiVersion: weir.dev/v1beta1, kind: OwnerReferencePolicy, metadata: {name: o}, spec: {match: {resources: [{apiGroups: [apps], resources: [deployments]}]}, blockOwnerDeletion: Deny, failurePolicy: Fail, validationActions: "+actions+"}}\n"), Options{})
		for _, w := range set.Webhooks(keptKinds, nil) {
			if w.Webhook == WebhookCascade || w.Webhook == WebhookConfirm {
				continue // always Ignore
			}
			if system := strings.HasPrefix(w.Name, "system."); w.FailurePolicy != want && !system || system && want != "Fail" {
				t.Errorf("%s: %s is asked under %s", actions, w.Name, w.FailurePolicy)
			}
		}
	}
	// Rules have actions of their own.
	set := Build(nil, sources(t, "f", "{apiVersion: weir.dev/v1beta1, kind: OwnerReferencePolicy, metadata: {name: o}, spec: {match: {resources: [{apiGroups: [apps], resources: [deployments]}]}, rules: {cycle: Deny}, failurePolicy: Fail, validationActions: [Warn]}}"), Options{})
	if w := set.Webhooks(keptKinds, nil); len(w) != 2 || w[0].Name != "fail.owners.weir.dev" || w[0].FailurePolicy != "Fail" {
		t.Errorf("%+v", w)
	}
}

// Propagation on trial says what it would refuse, and changes nothing.
func TestPropagationOnTrialIsToldOnly(t *testing.T) {
	for name, c := range map[string]struct{ trial, others, asks, says string }{
		"another way":             {"propagation: {default: Foreground}", "", "", ""},
		"the same way":            {"propagation: {default: Foreground}", "", "Foreground", ""},
		"dependents":              {"propagation: {dependents: [{apiGroups: [''], resources: [pods], action: Orphan}]}", "", "", ""},
		"in place of another":     {"propagation: {default: Orphan}, priority: 7", delpol("real", "propagation: {default: Foreground}"), "", ""},
		"behind another":          {"propagation: {default: Orphan}, priority: -7", delpol("real", "propagation: {default: Foreground}"), "", ""},
		"as another has it":       {"propagation: {default: Foreground}, priority: 7", delpol("real", "propagation: {default: Foreground}"), "", ""},
		"by its own default":      {"propagation: {default: Foreground, allowed: [Foreground]}", "", "Background", ""},
		"by what another makes":   {"propagation: {default: Orphan, allowed: [Orphan]}", delpol("real", "propagation: {default: Foreground}"), "", ""},
		"what may not be asked":   {"propagation: {default: Foreground, allowed: [Foreground]}", "", "Orphan", "may not be deleted with propagation policy Orphan: allowed is Foreground"},
		"it fails, under Fail":    {"propagation: {default: Foreground}, failurePolicy: Fail, match: oldObject.metadata.none == 1", "", "", ""},
		"it fails, beside others": {"propagation: {default: Orphan}, priority: 7, match: oldObject.metadata.none == 1", delpol("real", "propagation: {default: Foreground}"), "", ""},
	} {
		rest, condition, failing := strings.Cut(c.trial, ", match: ")
		text := delpol("trial", rest+", validationActions: [Warn, Audit]")
		if failing {
			text = strings.Replace(text, "resources: [deployments]}]", "resources: [deployments]}], matchConditions: [{name: c, expression: '"+condition+"'}]", 1)
		}
		set := Build(nil, sources(t, "f", text+"---\n"+c.others), Options{})
		q := web(nil)
		if c.asks != "" {
			q.Options = map[string]any{"propagationPolicy": c.asks}
		}
		d := set.Decide(q)
		if got := strings.Join(d.Warnings, "\n"); !d.Allowed || (got != "") != (c.says != "") || !strings.Contains(got, c.says) || !strings.Contains(d.Audit[AuditAudited], c.says) {
			t.Errorf("%s: %+v\nwant %s", name, d, c.says)
		}
		if real := c.others != ""; (d.By == "real") != real || d.Enforced != real || d.Arm != real {
			t.Errorf("%s: goes by %q, is enforced %t, armed %t", name, d.By, d.Enforced, d.Arm)
		}
		m, errs := set.FinalizersFor(storedAs(deployments))
		if some, _ := set.AddsFinalizer(schema.GroupResource{Group: "apps", Resource: "deployments"}); some != (c.others != "") || (m.By == "real") != (c.others != "") || len(errs) > 0 {
			t.Errorf("%s: adds the finalizer %t by %q, %v", name, some, m.By, errs)
		}
		if slices.ContainsFunc(set.Webhooks(keptKinds, nil), func(w WebhookRules) bool { return w.Webhook == WebhookAddFinalizer }) != (c.others != "") {
			t.Errorf("%s: writes come to Weir", name)
		}
	}
}

func TestOwnerReferencesOnTrial(t *testing.T) {
	refs := []any{map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "a", "uid": "u1", "blockOwnerDeletion": true}}
	for field, c := range map[string]struct{ text, patched string }{
		"blockOwnerDeletion: Deny":              {"may not block the deletion of its owner", ""},
		"blockOwnerDeletion: RequirePermission": {"may not block the deletion of its owner", ""},
		"changes: RequirePermission":            {"may be changed only by a user who may delete it", ""},
		"blockOwnerDeletion: Clear":             {"blockOwnerDeletion of the reference of", "[{replace /metadata/ownerReferences/0/blockOwnerDeletion false}]"},
	} {
		for actions, deny := range map[string]bool{"[Deny]": true, "[Warn, Audit]": false} {
			set := Build(nil, sources(t, "f", fmt.Sprintf("{apiVersion: weir.dev/v1beta1, kind: OwnerReferencePolicy, metadata: {name: o}, spec: {match: {resources: [{apiGroups: [apps], resources: [deployments]}]}, %s, validationActions: %s}}", field, actions)), Options{})
			q := web(map[string]any{"ownerReferences": refs})
			q.Operation, q.Object = Update, q.OldObject
			q.OldObject = web(nil).OldObject
			q.Facts.Kind = func(schema.GroupVersionKind) Kind {
				return Kind{Known: true, Served: true, Namespaced: true, Resources: []schema.GroupResource{{Group: "apps", Resource: "deployments"}}}
			}
			q.Answers = map[Access]Answer{}
			d := set.Decide(q)
			for len(d.Needs) > 0 {
				for _, a := range d.Needs {
					q.Answers[a] = false
				}
				d = set.Decide(q)
			}
			clear := c.patched != ""
			if d.Allowed != (!deny || clear) {
				t.Errorf("%s %s: %+v", field, actions, d)
			}
			// Clear says in any case what it does, or would do.
			if told := strings.Join(d.Warnings, "\n"); strings.Contains(told, c.text) != (!deny || clear) || strings.Contains(d.Audit[AuditAudited], c.text) != (!deny || clear) {
				t.Errorf("%s %s: %+v", field, actions, d)
			}
			patched := ""
			if len(d.Patch) > 0 {
				patched = fmt.Sprint(d.Patch)
			}
			if want := map[bool]string{true: c.patched}[deny]; patched != want {
				t.Errorf("%s %s: patched %s, want %s", field, actions, patched, want)
			}
		}
	}
}

// Rules have actions of their own: a policy on trial that refuses all the same says so.
func TestLintWarnsOfATrialWhoseRulesRefuse(t *testing.T) {
	for spec, warned := range map[string]bool{
		"validationActions: [Warn], rules: {dangling: Deny}":  true,
		"validationActions: [Audit], rules: {cycle: Deny}":    true,
		"validationActions: [Warn], rules: {dangling: Warn}":  false,
		"validationActions: [Deny], rules: {dangling: Deny}":  false,
		"validationActions: [Warn], blockOwnerDeletion: Deny": false,
	} {
		text := "{apiVersion: weir.dev/v1beta1, kind: OwnerReferencePolicy, metadata: {name: p}, spec: {match: {resources: [{apiGroups: [apps], resources: [deployments]}]}, " + spec + "}}"
		problems := Build(nil, sources(t, "f", text), Options{}).Problems()
		if found := len(problems) == 1 && problems[0].Warning && strings.Contains(problems[0].Message, "a rule with Deny refuses"); found != warned || !warned && len(problems) > 0 {
			t.Errorf("%s: %v", spec, problems)
		}
	}
}
