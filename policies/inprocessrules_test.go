package policies

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiserver/pkg/cel/environment"
)

// TestLessComesToTheWebhookThanTheAPIServerJudges says by each entry which requests are left.
func TestLessComesToTheWebhookThanTheAPIServerJudges(t *testing.T) {
	const confirmed = "has(oldObject.metadata.annotations) && 'weir.dev/confirm-delete' in oldObject.metadata.annotations"
	for name, c := range map[string]struct {
		kind, spec string
		want       []string // entries, and what is left to Weir
	}{
		"a confirmation": {"DeletionPolicy", "protection: {confirmation: Required, inCascades: Ignore}",
			[]string{"confirm.weir.dev", "left.delete.weir.dev has(request.dryRun) && request.dryRun || " + confirmed}},
		"of what a collector deletes": {"DeletionPolicy", "protection: {confirmation: Required}", []string{"cascade.weir.dev", "confirm.weir.dev",
			"left.delete.weir.dev has(request.dryRun) && request.dryRun || " + confirmed,
			"left.guard.weir.dev request.userInfo.username in ['weir'] || " + confirmed}},
		"that may not be left": {"DeletionPolicy", "failurePolicy: Fail, match: {objectSelector: {matchLabels: {a: b}}}, protection: {confirmation: Required, inCascades: Ignore}",
			[]string{"confirm.weir.dev", "fail.selection.weir.dev",
				"left.fail.delete.weir.dev has(request.dryRun) && request.dryRun || " + confirmed,
				"system.fail.selection.weir.dev", "system.left.fail.delete.weir.dev has(request.dryRun) && request.dryRun || " + confirmed}},
		"a count":           {"DeletionPolicy", "protection: {confirmation: Required, inCascades: Ignore, maxDependents: 3}", []string{"confirm.weir.dev", "delete.weir.dev"}},
		"a default":         {"DeletionPolicy", "propagation: {default: Orphan, allowed: [Orphan]}", []string{"delete.weir.dev", "stamp.weir.dev"}},
		"what is allowed":   {"DeletionPolicy", "propagation: {allowed: [Orphan]}", []string{"left.delete.weir.dev has(request.dryRun) && request.dryRun || " + confirmed}},
		"a brake":           {"DeletionPolicy", "propagation: {allowed: [Orphan]}, brake: {maxObjects: 3}", []string{"delete.weir.dev", "stamp.weir.dev"}},
		"owner references":  {"OwnerReferencePolicy", "changes: RequirePermission", nil},
		"how many they are": {"OwnerReferencePolicy", "blockOwnerDeletion: Deny", []string{"owners.weir.dev"}},
		"and too many":      {"OwnerReferencePolicy", "blockOwnerDeletion: Deny, failurePolicy: Fail", nil},
		"a condition that may fail": {"DeletionPolicy", `match: {matchConditions: [{name: c, expression: "has(oldObject.metadata.labels)"}]}, propagation: {allowed: [Orphan]}`,
			[]string{"delete.weir.dev"}},
		"rules about owners": {"OwnerReferencePolicy", "changes: RequirePermission, rules: {dangling: Deny}", []string{"owners.weir.dev"}},
	} {
		t.Run(name, func(t *testing.T) {
			match := "resources: [{apiGroups: [apps], resources: [deployments]}]"
			spec := "match: {" + match + "}, " + c.spec
			if strings.Contains(c.spec, "match: {") {
				spec = strings.Replace(c.spec, "match: {", "match: {"+match+", ", 1)
			}
			parsed, _ := Parse("f", []byte(fmt.Sprintf("{apiVersion: weir.dev/v1beta1, kind: %s, metadata: {name: p}, spec: {%s}}", c.kind, spec)))
			set := Build(nil, parsed, Options{Self: []string{"weir"}})
			if problems := set.Problems(); len(problems) > 0 {
				t.Log(problems)
			}
			judged := map[PolicyKey][]Webhook{}
			for _, one := range set.InProcess(environment.DefaultCompatibilityVersion(), true) {
				judged[one.Policy] = one.Judged
			}
			var got []string
			for _, r := range set.Webhooks(nil, judged) {
				entry := r.Name
				for _, m := range r.MatchConditions {
					if m.Name == "left-to-weir" {
						entry += " " + m.Expression
					}
				}
				got = append(got, entry)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
