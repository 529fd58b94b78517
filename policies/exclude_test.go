package policies

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"

	"github.com/weir-dev/weir/policies/v1beta1"
)

// policyWith is a policy about what match says, in flow style, which no user's request passes
// unless it is not judged.
func policyWith(kind, match string) string {
	rest := "protection: {confirmation: Required}"
	if kind == "OwnerReferencePolicy" {
		rest = "blockOwnerDeletion: Deny"
	}
	return fmt.Sprintf("---\n{apiVersion: weir.dev/v1beta1, kind: %s, metadata: {name: p}, spec: {match: {%s}, %s}}\n", kind, match, rest)
}

// A rollout deletes ReplicaSets and pods, a Job that has had its time is deleted, and no one is
// there who could confirm it. Whoever wants these judged says so. The collectors are asked about as
// guards (TestCollectorsAreJudgedByWhatGuards).
func TestKubernetesControllersAreNotJudgedUnlessAskedFor(t *testing.T) {
	controllers := []string{"system:kube-scheduler", "system:cloud-controller-manager", "system:apiserver"}
	for _, name := range []string{"replicaset-controller", "deployment-controller", "statefulset-controller", "daemon-set-controller", "job-controller", "cronjob-controller",
		"ttl-after-finished-controller", "certificate-controller", "persistent-volume-binder", "node-controller", "cloud-node-controller", "cloud-provider"} {
		controllers = append(controllers, "system:serviceaccount:kube-system:"+name)
	}
	users := map[string]bool{ // whether anybody ever judges them
		"alice": true, "system:serviceaccount:kube-system2:replicaset-controller": true, "system:serviceaccount:shop:kube-system": true, "": true, "system:kube-proxy": true,
	}
	for _, u := range systemUsers {
		users[u] = false
	}
	for _, said := range []string{"", ", kubernetesControllers: Exclude", ", kubernetesControllers: Judge"} {
		set := Build(nil, sources(t, "f", policyWith("DeletionPolicy", about+said)), Options{})
		for user, want := range users {
			judgedBoth(t, set, Question{User: User{Name: user}}, want)
		}
		for _, user := range controllers {
			judgedBoth(t, set, Question{User: User{Name: user, Groups: []string{"system:serviceaccounts"}}}, strings.HasSuffix(said, "Judge"))
		}
	}
}

const about = "resources: [{apiGroups: [apps], resources: [deployments]}]"

// judgedBoth asks a set about the delete of a Deployment by the user of a question, and what of it
// comes to Weir.
func judgedBoth(t *testing.T, set *Set, who Question, want bool) {
	t.Helper()
	q := web(nil)
	q.User, q.Asked = who.User, WebhookDelete
	if got := !set.Decide(q).Allowed; got != want {
		t.Errorf("%+v is judged: %t", q.User, got)
	}
	for _, w := range set.Webhooks(keptKinds, nil) {
		if w.Webhook == WebhookDelete && comes(t, w, &q) != want {
			t.Errorf("the request of %+v comes to %s: %t", q.User, w.Name, !want)
		}
	}
}

// A reference that blocks its owner's deletion is written by controllers above all: who asks for
// them to be judged means it.
func TestControllersAreJudgedByOwnerReferencePoliciesThatSaySo(t *testing.T) {
	for said, want := range map[string]bool{"": false, ", kubernetesControllers: Judge": true, ", kubernetesControllers: Exclude": false} {
		set := Build(nil, sources(t, "f", policyWith("OwnerReferencePolicy", about+said)), Options{})
		q := web(map[string]any{"ownerReferences": []any{map[string]any{"uid": "o", "blockOwnerDeletion": true}}})
		q.Operation, q.Object, q.OldObject = Create, q.OldObject, nil
		q.User.Name = "system:serviceaccount:kube-system:deployment-controller"
		if got := !set.Decide(q).Allowed; got != want {
			t.Errorf("%s: judged: %t", said, got)
		}
		if w := set.Webhooks(keptKinds, nil)[0]; comes(t, w, &q) != want {
			t.Errorf("%s: comes to %s: %t", said, w.Name, !want)
		}
	}
}

func TestWhomAPolicyExcludes(t *testing.T) {
	bob := User{Name: "bob's", Groups: []string{"dev", "ops"}}
	robot := User{Name: "system:serviceaccount:ci:robot", Groups: []string{"system:serviceaccounts:ci"}}
	for match, judges := range map[string][2]bool{
		"excludeUsers: [alice]":                             {true, true},
		`excludeUsers: [alice, "bob's"]`:                    {false, true},
		"excludeGroups: [ops]":                              {false, true},
		"excludeGroups: [op]":                               {true, true},
		"excludeServiceAccounts: [ci/robot]":                {true, false},
		"excludeServiceAccounts: [ci/robo]":                 {true, true},
		"excludeServiceAccounts: [c/robot, 'c/*']":          {true, true},
		"excludeServiceAccounts: ['ci/*']":                  {true, false},
		"excludeServiceAccounts: [a/b], excludeUsers: [ci]": {true, true},
		"users: [\"bob's\"]":                                {true, false},
		"users: [alice], groups: [ops]":                     {true, false},
		"users: [alice], serviceAccounts: ['ci/*']":         {false, true},
		"groups: [ops], excludeUsers: [\"bob's\"]":          {false, false},
	} {
		set := Build(nil, sources(t, "f", policyWith("DeletionPolicy", about+", "+match)), Options{})
		if p := set.Problems(); len(p) > 0 {
			t.Errorf("%s: %v", match, p)
		}
		judgedBoth(t, set, Question{User: bob}, judges[0])
		judgedBoth(t, set, Question{User: robot}, judges[1])
	}
}

// Who is excluded has to be, by each of the policies that share an entry, before the request may be
// dropped.
func TestAnEntryDropsWhomAllExclude(t *testing.T) {
	parts := []string{"excludeUsers: [alice]", "excludeUsers: [alice, bob]", "excludeGroups: [dev]", "excludeServiceAccounts: ['ci/*']", "excludeServiceAccounts: [ci/robot]",
		"users: [bob]", "groups: [dev]", "serviceAccounts: ['ci/*']",
		"kubernetesControllers: Judge", "resourceNames: [web]", "resourceNames: [web, api]", "scope: Namespaced", "scope: Cluster",
		"excludeResources: [{apiGroups: [apps], resources: [statefulsets]}]", "excludeResources: [{apiGroups: [apps], resources: ['*']}]"}
	resources := []string{"apiGroups: [apps], resources: [deployments]", "apiGroups: [apps], resources: [deployments, statefulsets]", "apiGroups: ['*'], resources: ['*']"}
	asked, dropped := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		var text strings.Builder
		for i := range rapid.IntRange(1, 3).Draw(rt, "policies") {
			match := "resources: [{" + rapid.SampledFrom(resources).Draw(rt, "resources") + "}]"
			fields := map[string]bool{}
			for _, part := range rapid.SliceOfN(rapid.SampledFrom(parts), 0, 3).Draw(rt, "parts") {
				if field, _, _ := strings.Cut(part, ":"); !fields[field] {
					fields[field] = true
					match += ", " + part
				}
			}
			text.WriteString(strings.ReplaceAll(policyWith("DeletionPolicy", match), "name: p", fmt.Sprintf("name: p%d", i)))
		}
		set := Build(nil, sources(t, "f", text.String()), Options{})
		q := web(nil)
		q.User = rapid.SampledFrom([]User{{Name: "alice"}, {Name: "bob", Groups: []string{"dev"}}, {Name: "system:serviceaccount:ci:robot"},
			{Name: "system:serviceaccount:kube-system:job-controller"}, {Name: "system:apiserver"}, {}}).Draw(rt, "user")
		q.Resource.Resource = rapid.SampledFrom([]string{"deployments", "statefulsets"}).Draw(rt, "resource")
		object(q.OldObject)["metadata"].(map[string]any)["name"] = rapid.SampledFrom([]string{"web", "api", "db"}).Draw(rt, "name")
		q.Name = rapid.SampledFrom([]string{"", object(q.OldObject).name()}).Draw(rt, "name of the request") // of a collection there is none
		if rapid.Bool().Draw(rt, "in no namespace") {
			q.Namespace, q.NamespaceObject = "", nil
		}
		comesToWeir := slices.ContainsFunc(set.Webhooks(keptKinds, nil), func(w WebhookRules) bool { return w.Webhook != WebhookCascade && comes(rt, w, &q) })
		switch refused := !set.Decide(q).Allowed; {
		case refused && !comesToWeir:
			rt.Fatalf("it would be refused and does not come:\n%s\n%+v", text.String(), q)
		case refused:
			asked++
		case !comesToWeir:
			dropped++
		}
	})
	if asked == 0 || dropped == 0 {
		t.Errorf("%d were refused, %d did not come: that shows little", asked, dropped)
	}
}

// What an object carries follows from what it is, not from who writes it: else whoever is excluded
// could take it off.
func TestWhoIsExcludedFindsTheFinalizerLikeAnybody(t *testing.T) {
	match := about + ", excludeUsers: [alice], kubernetesControllers: Exclude"
	text := strings.ReplaceAll(policyWith("DeletionPolicy", match), "protection: {confirmation: Required}", "propagation: {default: Orphan, allowed: [Orphan]}")
	set := Build(nil, sources(t, "f", text), Options{})
	for _, user := range []string{"alice", "bob", "system:serviceaccount:kube-system:deployment-controller"} {
		q := web(nil)
		q.Operation, q.Object, q.OldObject, q.User.Name = Create, q.OldObject, nil, user
		if d := set.Decide(q); d.Finalizers != AddFinalizers {
			t.Errorf("%s makes an object without the finalizer", user)
		}
		for _, w := range set.Webhooks(keptKinds, nil) {
			if w.Webhook == WebhookAddFinalizer && !comes(t, w, &q) {
				t.Errorf("what %s makes does not come to %s", user, w.Name)
			}
		}
		dying := web(map[string]any{"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": []any{v1beta1.Finalizer}})
		dying.User.Name = user
		if s := set.Enforce(dying); s.By != "p" {
			t.Errorf("the deletion that %s asked for goes as %q says", user, s.By)
		}
		plain := web(nil)
		plain.User.Name, plain.Options = user, map[string]any{"propagationPolicy": "Foreground"}
		if d := set.Decide(plain); d.Allowed != (user != "bob") {
			t.Errorf("%s may delete in Foreground: %t", user, d.Allowed)
		}
	}
}

func TestWhatAPolicyIsAbout(t *testing.T) {
	cluster := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	for match, want := range map[string]string{
		"resources: [{apiGroups: [apps], resources: ['*']}]":                                                                                          "db web node",
		"resources: [{apiGroups: [apps], resources: ['*']}], resourceNames: [web, other]":                                                             "web",
		"resources: [{apiGroups: [apps], resources: ['*']}], scope: Namespaced":                                                                       "db web",
		"resources: [{apiGroups: [apps], resources: ['*']}], scope: Cluster":                                                                          "node",
		"resources: [{apiGroups: [apps], resources: ['*']}], scope: '*'":                                                                              "db web node",
		"resources: [{apiGroups: ['*'], resources: ['*']}], excludeResources: [{apiGroups: [apps], resources: [statefulsets]}]":                       "web node",
		"resources: [{apiGroups: ['*'], resources: ['*']}], excludeResources: [{apiGroups: ['*'], resources: [deployments]}]":                         "db",
		"resources: [{apiGroups: [apps], resources: [deployments]}], excludeResources: [{apiGroups: [batch], resources: [deployments]}]":              "web node",
		"resources: [{apiGroups: [apps], resources: [deployments, statefulsets]}], excludeResources: [{apiGroups: [apps], resources: [deployments]}]": "db",
	} {
		set := Build(nil, sources(t, "f", policyWith("DeletionPolicy", match)), Options{})
		var got []string
		for _, name := range []string{"db", "web", "node"} {
			q := web(map[string]any{"name": name})
			q.Name, q.Resource = name, cluster
			switch name {
			case "db":
				q.Resource.Resource = "statefulsets"
			case "node":
				q.Namespace, q.NamespaceObject = "", nil
			}
			if !set.Decide(q).Allowed {
				got = append(got, name)
			}
			for _, w := range set.Webhooks(keptKinds, nil) {
				if w.Webhook == WebhookDelete && !strings.HasPrefix(w.Name, "eviction.") && comes(t, w, &q) != slices.Contains(got, name) {
					t.Errorf("%s: %s comes to %s: %t", match, name, w.Name, comes(t, w, &q))
				}
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: about %s, want %s", match, got, want)
		}
	}
}

func TestLintWarnsOfWhatExcludesTooLittle(t *testing.T) {
	for match, want := range map[string]string{
		about + ", excludeUsers: [alice], excludeGroups: [dev]": "",
		about + ", kubernetesControllers: Judge":                "rollouts, and the removal of finished Jobs, wait for ever",
		"resources: [{apiGroups: [apps], resources: ['*']}], excludeResources: [{apiGroups: [apps], resources: [deployments]}]": "",
	} {
		var got []string
		for _, p := range Build(nil, sources(t, "f", policyWith("DeletionPolicy", match)), Options{}).Problems() {
			if !p.Warning {
				t.Errorf("%s: %s", match, p)
			}
			got = append(got, p.Message)
		}
		if (want == "") != (len(got) == 0) || !strings.Contains(strings.Join(got, "; "), want) {
			t.Errorf("%s: %q, want %q", match, got, want)
		}
	}
}

// A configuration with one expression that is too long for the API server is refused as a whole,
// and none of the policies is in force then.
func TestNamesThatAreTooManyAreNoCondition(t *testing.T) {
	for n, want := range map[int]bool{1: true, 90: true, 110: false, 1000: false} {
		var text strings.Builder
		for i := range n {
			fmt.Fprintf(&text, "---\n{apiVersion: weir.dev/v1beta1, kind: DeletionPolicy, metadata: {name: p%d}, spec: {match: {resources: [{apiGroups: [''], resources: [configmaps]}], resourceNames: ['%s-%05d']}, protection: {confirmation: Required}}}\n",
				i, strings.Repeat("n", 240), i)
		}
		named := false
		for _, w := range Build(nil, sources(t, "f", text.String()), Options{}).Webhooks(keptKinds, nil) {
			for _, c := range w.MatchConditions {
				named = named || c.Name == "named"
				if len(c.Expression) > mostExpression {
					t.Errorf("%d names: %s of %s has %d bytes", n, c.Name, w.Name, len(c.Expression))
				}
			}
		}
		if named != want {
			t.Errorf("%d names: a condition names them: %t, want %t", n, named, want)
		}
	}
}

// TestExpressionsThatAreTooLongAreLeftOut: the same holds of who is excluded. Weir then judges by
// itself whom a policy is about.
func TestExpressionsThatAreTooLongAreLeftOut(t *testing.T) {
	list := func(n, length int) string {
		names := make([]string, n)
		for i := range names {
			names[i] = fmt.Sprintf("%s-%02d", strings.Repeat("n", length), i)
		}
		return "[" + strings.Join(names, ", ") + "]"
	}
	rule := func(group string, n int) string {
		return "{apiGroups: [" + group + "], resources: " + list(n, 200) + "}"
	}
	for match, want := range map[string]string{
		"excludeUsers: " + list(1, 500) + ", excludeGroups: " + list(1, 500) + ", resources: [" + rule("a", 1) + "]":   "not-excluded not-controllers",
		"excludeUsers: " + list(60, 500) + ", excludeGroups: " + list(60, 500) + ", resources: [" + rule("a", 1) + "]": "not-controllers",
		"resources: [" + rule("a", 1) + "]}, protection: {maxDependents: 1, inCascades: Ignore}}}\n---\n{apiVersion: weir.dev/v1beta1, kind: DeletionPolicy, metadata: {name: q}, spec: {match: {kubernetesControllers: Judge, resources: [" +
			rule("a", 60) + "]": "not-controllers",
		"resources: [" + rule("a", 1) + "]}, protection: {maxDependents: 1, inCascades: Ignore}}}\n---\n{apiVersion: weir.dev/v1beta1, kind: DeletionPolicy, metadata: {name: q}, spec: {match: {kubernetesControllers: Judge, resources: [" +
			rule("a", 60) + ", " + rule("b", 60) + ", " + rule("c", 60) + ", " + rule("d", 60) + ", " + rule("e", 60) + "]": "",
	} {
		set := Build(nil, sources(t, "f", "{apiVersion: weir.dev/v1beta1, kind: DeletionPolicy, metadata: {name: p}, spec: {match: {"+match+"}, protection: {maxDependents: 1, inCascades: Ignore}}}"), Options{})
		for _, p := range set.Problems() {
			if !p.Warning {
				t.Fatal(p)
			}
		}
		webhooks := set.Webhooks(keptKinds, nil)
		if len(webhooks) != 1 {
			t.Fatalf("%d entries, want one", len(webhooks))
		}
		var got []string
		for _, c := range webhooks[0].MatchConditions {
			if len(c.Expression) > mostExpression {
				t.Errorf("%s has %d bytes", c.Name, len(c.Expression))
			}
			if c.Name == "not-excluded" || c.Name == "not-controllers" {
				got = append(got, c.Name)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%.300s: dropped by %q, want %q", match, got, want)
		}
	}
}
