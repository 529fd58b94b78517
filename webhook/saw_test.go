package webhook

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

const (
	orphans = `{apiVersion: weir.dev/v1beta1, kind: DeletionPolicy, metadata: {name: keep}, spec: {match: {resources: [{apiGroups: [""], resources: [secrets]}]}, propagation: {default: Background, allowed: [Background, Orphan]}}}`
	aSecret = `{operation: DELETE, resource: {group: "", version: v1, resource: secrets}, kind: {group: "", version: v1, kind: Secret}, namespace: shop, name: s, userInfo: {username: alice}, MORE oldObject: {apiVersion: v1, kind: Secret, metadata: {name: s, namespace: shop, uid: uid-s, finalizers: [weir.dev/propagation]}}}`
)

func aSecretWith(more string) string { return strings.Replace(aSecret, "MORE", more, 1) }

// TestOnlyDeletesThatAreLetThroughAreTold: not what is refused, tried, or changed; and a user's
// text for a propagation is not repeated.
func TestOnlyDeletesThatAreLetThroughAreTold(t *testing.T) {
	for name, c := range map[string]struct {
		path, review string
		want         []string
	}{
		"a delete": {"delete", aSecretWith(""),
			[]string{"uid-s alice propagation by default; policy keep: Background"}},
		"orphan": {"delete", aSecretWith("options: {propagationPolicy: Orphan},"),
			[]string{"uid-s alice propagation Orphan; policy keep: Orphan"}},
		"a propagation of its own": {"delete", aSecretWith("options: {propagationPolicy: Sideways},"), nil},
		"dry run":                  {"delete", aSecretWith("dryRun: true,"), nil},
		"another webhook":          {"clear", aSecretWith(""), nil},
		"refused":                  {"delete", aLimitedWeb, nil},
	} {
		t.Run(name, func(t *testing.T) {
			withFixture(t, func(b *fixture) {
				var told []string
				saw := func(uid types.UID, user, how string) { told = append(told, string(uid)+" "+user+" "+how) }
				var err error
				if b.handler, err = New(Options{Config: b.api.Config(), Policies: b.state, Takes: takes, Facts: someFacts(),
					Saw: saw}); err != nil {
					b.Fatal(err)
				}
				b.policies(limited + "\n---\n" + orphans)
				code, body := b.ask(c.path, c.review)
				if !slices.Equal(told, c.want) {
					b.Errorf("told %q, want %q: %d %s", told, c.want, code, body)
				}
			})
		})
	}
}
