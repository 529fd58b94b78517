package policies

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"pgregory.net/rapid"
)

// said is how many policies could not be judged; what is broken and ignored is told when it is
// compiled.
func said(errs []PolicyError) (n int) {
	for _, e := range errs {
		if !strings.Contains(e.Err, "is broken") {
			n++
		}
	}
	return n
}

func namespaceNamed(name string) map[string]any {
	return map[string]any{"metadata": map[string]any{"name": name, "labels": map[string]any{"kubernetes.io/metadata.name": name}}}
}

// deleteIn is a DELETE of a Deployment in a namespace; of one in none, if that is empty.
func deleteIn(namespace string) Question {
	q := web(map[string]any{"namespace": namespace})
	q.Namespace, q.NamespaceObject = namespace, nil
	if namespace != "" {
		q.NamespaceObject = namespaceNamed(namespace)
	}
	return q
}

// asTheAPIServer asks each entry that a request comes to for its part, and gives what they say
// together.
func asTheAPIServer(t interface{ Fatal(...any) }, set *Set, hook Webhook, q Question) (d Decision, asked []WebhookRules) {
	d.Allowed = true
	var messages []string
	for _, w := range set.Webhooks(keptKinds, nil) {
		if w.Webhook != hook || !comes(t, w, &q) {
			continue
		}
		of := q
		of.Asked, of.Part = w.Webhook, w.Part
		one := set.Decide(of)
		asked = append(asked, w)
		if !one.Allowed {
			d.Allowed = false
			messages = append(messages, strings.Split(one.Message, "\n")...)
		}
		d.Warnings, d.Errors = append(d.Warnings, one.Warnings...), append(d.Errors, one.Errors...)
		if one.By != "" {
			d.By += one.By
			d.Arm, d.Enforced = one.Arm, one.Enforced
		}
	}
	slices.Sort(messages)
	d.Message = strings.Join(messages, "\n")
	return d, asked
}

// However policies are shared out among the entries, each is heard once, and together they say what
// all of them say.
func TestPartsTogetherSayWhatAllPoliciesSay(t *testing.T) {
	parts := map[Part]int{}
	armed := 0
	rapid.Check(t, func(rt *rapid.T) {
		var text strings.Builder
		for i := range rapid.IntRange(1, 5).Draw(rt, "policies") {
			match := rapid.SampledFrom([]string{"", "", ", namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: kube-system}}",
				", namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: kube-system}}", ", matchConditions: [{name: c, expression: 'oldObject.nothing > 1'}]", ", matchConditions: [{name: c, expression: '('}]"}).Draw(rt, "match")
			rest := rapid.SampledFrom([]string{"protection: {confirmation: Required}", "propagation: {default: Orphan, allowed: [Orphan]}", "propagation: {default: Foreground}",
				"propagation: {default: Orphan}, validationActions: [Warn]", "protection: {confirmation: Required}, validationActions: [Warn]"}).Draw(rt, "rest")
			failure := rapid.SampledFrom([]string{"Ignore", "Fail"}).Draw(rt, "failurePolicy")
			fmt.Fprintf(&text, "---\n{apiVersion: weir.dev/v1beta1, kind: DeletionPolicy, metadata: {name: p%d}, spec: {match: {%s%s}, %s, failurePolicy: %s}}\n", i, about, match, rest, failure)
		}
		set := Build(nil, sources(t, "f", text.String()), Options{Namespace: "weir-system"})
		// Only in kube-system can the entry for all namespaces be asked: half of the draws are of
		// it, so that none of the parts is left out by chance.
		q := deleteIn(rapid.SampledFrom([]string{"shop", "kube-system", "kube-system", "kube-system", "kube-node-lease", "weir-system", ""}).Draw(rt, "namespace"))
		if rapid.Bool().Draw(rt, "Foreground") {
			q.Options = asking("Foreground")
		}
		got, asked := asTheAPIServer(rt, set, WebhookDelete, q)
		seen := map[Part]bool{}
		for _, w := range asked {
			if seen[w.Part] {
				rt.Fatalf("part %s is asked twice", w.Part)
			}
			seen[w.Part] = true
			parts[w.Part]++
		}
		want := set.Decide(q)
		full := strings.Split(want.Message, "\n")
		slices.Sort(full)
		if m := strings.Join(full, "\n"); got.Allowed != want.Allowed || got.Message != m || got.By != want.By || got.Arm != want.Arm ||
			said(got.Errors) != said(want.Errors) || len(got.Warnings) != len(want.Warnings) {
			rt.Fatalf("together: %+v\nall: %+v\n%s", got, want, text.String())
		}
		if got.Arm {
			armed++
		}
	})
	if len(parts) != len(Parts) || armed == 0 {
		t.Errorf("parts %v were asked, %d objects armed: that shows little", parts, armed)
	}
}

// What the one cannot answer refuses nothing for the other: the API server has a failurePolicy for
// each.
func TestErrorOfOnePartIsNotHeardInAnother(t *testing.T) {
	set := Build(nil, sources(t, "f",
		delpol("a", "protection: {maxDependents: 0}, failurePolicy: Fail")+delpol("b", "protection: {maxDependents: 0}")+
			"---\n{apiVersion: weir.dev/v1beta1, kind: OwnerReferencePolicy, metadata: {name: c}, spec: {match: {"+about+"}, changes: RequirePermission, failurePolicy: Fail}}\n"), Options{})
	q := deleteIn("shop")
	q.Facts = Facts{} // what would also be deleted is not known
	for part, want := range map[Part]string{PartIgnore: "b", PartFail: "a", PartEverywhere: "", "": "ab"} {
		q.Part = part
		d := set.Decide(q)
		got := ""
		for _, e := range d.Errors {
			got += e.Policy.Name
		}
		if got != want || d.Allowed == strings.Contains(want, "a") {
			t.Errorf("part %q: errors of %q, allowed %t", part, got, d.Allowed)
		}
	}
	w := deleteIn("shop")
	w.Operation, w.Object = Update, map[string]any{"metadata": map[string]any{"name": "web", "ownerReferences": []any{map[string]any{"uid": "o"}}}}
	for part, want := range map[Part]int{PartIgnore: 0, PartFail: 1} {
		w.Part = part
		if d := set.Decide(w); (len(d.Needs) > 0) != (want > 0) {
			t.Errorf("part %q asks for %v", part, d.Needs)
		}
	}
}

// A cluster comes up through these namespaces. What cannot be judged passes there, unless the
// policy names them; what can be is judged like everywhere.
func TestSystemNamespacesAreLeftOutOfFail(t *testing.T) {
	const named = ", namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: In, values: [shop, kube-system]}]}"
	for _, c := range []struct {
		namespace, match string
		fails            bool // refused while Weir is down, or cannot say
	}{
		{"shop", "", true}, {"kube-system", "", false}, {"kube-node-lease", "", false}, {"weir-system", "", false}, {"default", "", true}, {"", "", true},
		{"shop", named, true}, {"kube-system", named, true}, {"default", named, false},
		{"kube-system", ", namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: weir-system}}", false},
		{"weir-system", ", namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: In, values: [weir-system, kube-system]}]}", false},
		{"kube-system", ", namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [kube-system]}]}", false},
	} {
		of := func(condition string) *Set {
			return Build(nil, sources(t, "f", strings.ReplaceAll(policyWith("DeletionPolicy", about+c.match+condition), "Required}", "Required}, failurePolicy: Fail")), Options{Namespace: "weir-system"})
		}
		q, set := deleteIn(c.namespace), of("")
		_, asked := asTheAPIServer(t, set, WebhookDelete, q)
		fails := slices.ContainsFunc(asked, func(w WebhookRules) bool { return w.FailurePolicy == admissionregistrationv1.Fail })
		if fails != c.fails {
			t.Errorf("in %q, %s: an outage refuses: %t", c.namespace, c.match, fails)
		}
		selects := set.Decide(q).Allowed == false
		if d, _ := asTheAPIServer(t, set, WebhookDelete, q); d.Allowed == selects {
			t.Errorf("in %q, %s: judged: %t, want %t", c.namespace, c.match, !d.Allowed, selects)
		}
		broken := of(", matchConditions: [{name: c, expression: 'oldObject.nothing > 1'}]")
		if d, _ := asTheAPIServer(t, broken, WebhookDelete, q); d.Allowed == c.fails {
			t.Errorf("in %q, %s: what cannot be judged is refused: %t", c.namespace, c.match, !d.Allowed)
		}
	}
}

// What cannot be in any of those namespaces needs no entry for them.
func TestEntriesForSystemNamespacesAreThereWhereTheyMatter(t *testing.T) {
	for match, want := range map[string]int{
		"": 2, ", namespaceSelector: {matchLabels: {team: a}}": 2, ", namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: shop}}": 1,
		", namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: weir-system}}": 2,
		", namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: kube-system}}": 1,
	} {
		set := Build(nil, sources(t, "f", strings.ReplaceAll(policyWith("DeletionPolicy", about+match), "Required}", "Required}, failurePolicy: Fail")), Options{Namespace: "weir-system"})
		w := slices.DeleteFunc(set.Webhooks(keptKinds, nil), func(w WebhookRules) bool { return w.Webhook != WebhookDelete })
		if len(w) != want {
			t.Errorf("%q: %d entries, want %d", match, len(w), want)
		}
	}
}

// Nothing is created or edited only because Weir is there: what has no finalizer gets it at its
// deletion, or by back-fill.
func TestTheFinalizerIsNeverWaitedFor(t *testing.T) {
	set := Build(nil, sources(t, "f", delpol("a", "propagation: {default: Orphan}, failurePolicy: Fail")+
		strings.Replace(delpol("b", "propagation: {default: Foreground}, failurePolicy: Fail"), "deployments]}]", "statefulsets]}], matchConditions: [{name: c, expression: 'true'}]", 1)), Options{})
	n := 0
	for _, w := range set.Webhooks(keptKinds, nil) {
		if w.Webhook != WebhookAddFinalizer {
			continue
		}
		n++
		if w.FailurePolicy != admissionregistrationv1.Ignore || w.Part != "" {
			t.Errorf("%s: %s, part %q", w.Name, w.FailurePolicy, w.Part)
		}
	}
	if n != 2 {
		t.Errorf("%d entries add the finalizer", n)
	}
}

// One part would add the finalizer to the object and have the client come again, where another
// refuses for good.
func TestWhatAnotherPartRefusesIsNotArmed(t *testing.T) {
	set := Build(nil, sources(t, "f", delpol("a", "propagation: {default: Orphan}")+delpol("b", "protection: {confirmation: Required}, failurePolicy: Fail")), Options{})
	q := deleteIn("shop")
	q.Part = PartIgnore
	if d := set.Decide(q); !d.Allowed || d.Arm || d.By != "a" {
		t.Errorf("%+v", d)
	}
	q.OldObject["metadata"].(map[string]any)["annotations"] = map[string]any{"weir.dev/confirm-delete": "u1"}
	if d := set.Decide(q); !d.Allowed || !d.Arm {
		t.Errorf("confirmed: %+v", d)
	}
}

func TestPoliciesThatCanStopTheClusterSaySo(t *testing.T) {
	const fail = ", failurePolicy: Fail"
	pods, all := "resources: [{apiGroups: [''], resources: [pods, secrets]}]", "resources: [{apiGroups: ['*'], resources: ['*']}]"
	for _, c := range []struct{ kind, match, rest, want string }{
		{"DeletionPolicy", pods, fail, "pods"},
		{"DeletionPolicy", pods, "", ""},
		{"DeletionPolicy", pods, fail + ", validationActions: [Warn]", ""},
		{"DeletionPolicy", pods + ", namespaceSelector: {matchLabels: {team: a}}", fail, "pods"},
		{"DeletionPolicy", all, fail, "all requests"},
		{"DeletionPolicy", "resources: [{apiGroups: [apps], resources: ['*']}]", fail, "all requests"},
		{"DeletionPolicy", "resources: [{apiGroups: ['*'], resources: [deployments]}]", fail, ""},
		{"DeletionPolicy", all + ", excludeResources: [{apiGroups: [''], resources: [pods]}], namespaceSelector: {matchLabels: {team: a}}", fail, ""},
		{"DeletionPolicy", all + ", objectSelector: {matchLabels: {team: a}}", fail, "pods"},
		{"DeletionPolicy", about, fail, ""},
		{"DeletionPolicy", about + ", namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: kube-system}}", fail, "kube-system"},
		{"OwnerReferencePolicy", pods, fail, "pods"},
		{"OwnerReferencePolicy", about, fail, ""},
	} {
		set := Build(nil, sources(t, "f", strings.NewReplacer("Required}", "Required, inCascades: Ignore}"+c.rest, "Deny", "Deny"+c.rest).Replace(policyWith(c.kind, c.match))), Options{})
		var got []string
		for _, p := range set.Problems() {
			if !p.Warning || p.Field != "spec.failurePolicy" {
				t.Error(p)
			}
			got = append(got, p.Message)
		}
		s := set.Statuses()[0]
		if (c.want == "") != (len(got) == 0) || !strings.Contains(strings.Join(got, "; "), c.want) || s.FailsClosed != (strings.Contains(c.rest, "Fail") && !strings.Contains(c.rest, "Warn")) {
			t.Errorf("%s %s %s: %q, status %+v; want %q", c.kind, c.match, c.rest, got, s, c.want)
		}
	}
}
