package enforce

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/internal/testkit/apitest"
	"github.com/weir-dev/weir/internal/testkit/fixture"
	"github.com/weir-dev/weir/policies"
	"github.com/weir-dev/weir/policies/live"
)

// What policies are about is counted for all of them, at the cost of a list of the kinds of which
// the graph cannot tell.
func TestWhatPoliciesAreAboutIsCounted(t *testing.T) {
	api := apitest.New()
	for name, labels := range map[string]string{"shop": "env: prod", "play": "env: test", "kube": ""} {
		api.Put("namespaces", fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: %s, labels: {%s}}}", name, labels))
	}
	for name, metadata := range map[string]string{
		"one": ", labels: {tier: x}", "two": ", labels: {tier: 'y'}", "three": "", "four": ", labels: {kept: 'yes', tier: x}",
		"going": ", labels: {tier: x}, finalizers: [a], deletionTimestamp: '2026-01-01T00:00:00Z'",
	} {
		fixture.PutConfigMap(api, name, metadata)
	}
	const head = "{apiVersion: weir.dev/v1beta1, kind: %s, metadata: {name: %s}, spec: {match: {resources: [{apiGroups: [''], resources: [%s]}]%s}, %s}}"
	for name, match := range map[string]string{
		"looks": `, matchConditions: [{name: c, expression: "oldObject.data.password.startsWith('a')"}]`,
		"fails": `, matchConditions: [{name: c, expression: "oldObject.metadata.labels.tier == 'x'"}]`, "kept": ", objectSelector: {matchLabels: {kept: 'yes'}}",
		"here": ", namespaceSelector: {matchLabels: {env: prod}}", "elsewhere": ", namespaceSelector: {matchLabels: {env: test}}",
		"named": ", resourceNames: [one]", "scoped": ", scope: Cluster",
	} {
		api.Put("deletionpolicies", fmt.Sprintf(head, "DeletionPolicy", name, "configmaps", match, "protection: {confirmation: Required}"))
	}
	api.Put("deletionpolicies", fmt.Sprintf(head, "DeletionPolicy", "secrets", "secrets", "", "protection: {confirmation: Required}"))
	api.Put("deletionpolicies", fmt.Sprintf(head, "DeletionPolicy", "prod", "namespaces", ", namespaceSelector: {matchLabels: {env: prod}}", "protection: {confirmation: Required}"))
	api.Put("ownerreferencepolicies", fmt.Sprintf(head, "OwnerReferencePolicy", "owners", "configmaps", ", objectSelector: {matchLabels: {tier: x}}", "blockOwnerDeletion: Deny"))
	for name, selector := range map[string]string{"a-prod": "namespaceSelector: {matchLabels: {env: prod}}, ", "rest": "", "void": ""} {
		api.Put("drainpolicies", fmt.Sprintf("{apiVersion: weir.dev/v1beta1, kind: DrainPolicy, metadata: {name: %s}, spec: {%swaves: [{name: all, resources: [{apiGroups: ['*'], resources: ['*']}]}]}}", name, selector))
	}
	inForce(t, api, func(t *testing.T, state *live.State) {
		settlePolicies(state)
		b := filler(t, api, state)
		events := []graph.Event{graph.Serving{Resources: []graph.Resource{
			{Resource: "configmaps", Kind: "ConfigMap", Version: "v1", Versions: []string{"v1"}, Namespaced: true, Collected: true, Deletable: true, Listable: true},
			{Resource: "secrets", Kind: "Secret", Version: "v1", Versions: []string{"v1"}, Namespaced: true, Collected: true, Deletable: true, Listable: true},
			{Resource: "namespaces", Kind: "Namespace", Version: "v1", Versions: []string{"v1"}, Collected: true, Deletable: true, Listable: true},
		}}}
		for i := range 3 {
			events = append(events, graph.Observed{Object: &graph.Object{Kind: fixture.Secrets, Namespace: "shop", Name: fmt.Sprint("s", i), UID: fixture.UIDOf(fmt.Sprint(i)), ResourceVersion: "5"}})
		}
		b.store.Apply(events...)
		var lists []string
		api.Intercept(func(r apitest.Request) *apitest.Reply {
			lists = append(lists, r.Path)
			return nil
		})
		got := map[string]string{}
		for key, n := range counts(t, b) {
			got[key.String()] = fmt.Sprint(n.matched, " ", n.unknown)
		}
		if diff := cmp.Diff(map[string]string{
			`DeletionPolicy "fails"`:        "0 false",
			`DeletionPolicy "looks"`:        "0 false",
			`DeletionPolicy "kept"`:         "1 false",
			`DeletionPolicy "here"`:         "4 false",
			`DeletionPolicy "elsewhere"`:    "0 false",
			`DeletionPolicy "named"`:        "1 false",
			`DeletionPolicy "scoped"`:       "0 false",
			`DeletionPolicy "secrets"`:      "3 false",
			`DeletionPolicy "prod"`:         "1 false",
			`OwnerReferencePolicy "owners"`: "2 false",
			`DrainPolicy "a-prod"`:          "1 false",
			`DrainPolicy "rest"`:            "3 false",
			`DrainPolicy "void"`:            "3 false",
		}, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		slices.Sort(lists)
		if diff := cmp.Diff([]string{"/api/v1/configmaps", "/api/v1/namespaces"}, lists); diff != "" {
			t.Errorf("lists (-want +got):\n%s", diff)
		}

		api.Intercept(func(r apitest.Request) *apitest.Reply {
			if strings.HasSuffix(r.Path, "/configmaps") {
				return apitest.Refuse(403, "Forbidden", "no")
			}
			return nil
		})
		for key, n := range counts(t, b) {
			if about := key.Kind != "DrainPolicy" && key.Name != "looks" && key.Name != "fails" && key.Name != "secrets" && key.Name != "prod"; n.unknown != about {
				t.Errorf("configmaps cannot be listed: %s is unknown: %t", key, n.unknown)
			}
		}
	})
}

// A list that grows too old counts nothing twice, and what all policies about a kind select by is
// for the API server to select.
func TestCountingAsksForLittle(t *testing.T) {
	api := apitest.New()
	api.Put("namespaces", "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}")
	for i := range 600 {
		fixture.PutConfigMap(api, fmt.Sprintf("c%04d", i), kept)
	}
	api.Put("deletionpolicies", strings.ReplaceAll(keptOnly, "propagation: {default: Orphan}", "protection: {confirmation: Required}"))
	inForce(t, api, func(t *testing.T, state *live.State) {
		b := filler(t, api, state)
		pages, selectors := 0, map[string]bool{}
		api.Intercept(func(r apitest.Request) *apitest.Reply {
			query, err := url.ParseQuery(r.Query)
			if pages++; pages == 2 {
				reply := apitest.Refuse(410, "Expired", "too old")
				reply.Body.(map[string]any)["metadata"] = map[string]any{"continue": query.Get("continue")}
				return reply
			}
			if err != nil {
				t.Error(err)
			}
			selectors[query.Get("labelSelector")] = true
			return nil
		})
		key := policies.PolicyKey{Kind: "DeletionPolicy", Name: "p"}
		if n := counts(t, b)[key]; n.matched != 600 {
			t.Errorf("counted %+v", n)
		}
		if diff := cmp.Diff(map[string]bool{"kept in (yes)": true}, selectors); diff != "" {
			t.Errorf("selectors (-want +got):\n%s", diff)
		}
	})
}

// counts are those of a pass.
func counts(t *testing.T, b *backFill) map[policies.PolicyKey]tally {
	t.Helper()
	clear(b.looks)
	b.pass(t.Context())
	now, _ := b.board.read()
	return now.counted.tallies
}
