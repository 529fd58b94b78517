package policies

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"

	"github.com/weir-dev/weir/policies/v1alpha1"
)

// Whatever the selectors are, the index finds every policy that selects an object, in order, and
// all that cannot tell.
func TestTheIndexFindsEveryPolicyThatSelects(t *testing.T) {
	left := 0
	rapid.Check(t, func(rt *rapid.T) {
		selector := func(name string) string {
			return rapid.SampledFrom([]string{"", "", "{}", "{matchLabels: {a: x}}", "{matchLabels: {a: y}}", "{matchLabels: {a: x, b: x}}", "{matchLabels: {b: ''}}",
				"{matchExpressions: [{key: a, operator: In, values: [x, y]}]}", "{matchExpressions: [{key: a, operator: NotIn, values: [x]}]}",
				"{matchExpressions: [{key: a, operator: Exists}]}", "{matchExpressions: [{key: a, operator: DoesNotExist}]}",
				"{matchLabels: {b: y}, matchExpressions: [{key: a, operator: In, values: [y, z]}]}", "{matchLabels: {'not a label': x}}"}).Draw(rt, name)
		}
		var b strings.Builder
		for i := range rapid.IntRange(0, 12).Draw(rt, "policies") {
			match := rapid.SampledFrom([]string{`resources: [{apiGroups: [apps], resources: [deployments]}]`, `resources: [{apiGroups: ["*"], resources: ["*"]}]`}).Draw(rt, "resources")
			for _, field := range []string{"namespaceSelector", "objectSelector"} {
				if s := selector(field); s != "" {
					match += ", " + field + ": " + s
				}
			}
			fmt.Fprintf(&b, "---\n{apiVersion: weir.dev/v1alpha1, kind: DeletionPolicy, metadata: {name: p%d}, spec: {match: {%s}, propagation: {default: Orphan}}}\n", i, match)
		}
		s := Build(nil, sources(t, "f", b.String()), Options{})
		labels := func(name string) map[string]any {
			out := map[string]any{}
			for _, k := range []string{"a", "b"} {
				if v := rapid.SampledFrom([]string{"-", "x", "y", ""}).Draw(rt, name+" "+k); v != "-" {
					out[k] = v
				}
			}
			return map[string]any{"metadata": map[string]any{"name": "n", "labels": out}}
		}
		q := Question{Operation: Update, Resource: deployments, Namespace: "shop", Object: labels("object"), OldObject: labels("old object"), NamespaceObject: labels("namespace")}
		switch rapid.IntRange(0, 5).Draw(rt, "place") {
		case 0:
			q.Namespace, q.NamespaceObject = "", nil
		case 1:
			q.NamespaceObject = nil
		case 2:
			q.Operation, q.Object = Delete, nil
		case 3:
			q.Resource = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
		}
		got := s.deletion.perhaps(&q).policies
		var want []*compiled
		for _, c := range s.deletion.about(q.Resource.GroupResource()) {
			if ok, err := c.selects(&q); ok || err != nil {
				want = append(want, c)
			} else if !slices.Contains(got, c) {
				left++
			}
		}
		if kept := slices.DeleteFunc(slices.Clone(got), func(c *compiled) bool { return !slices.Contains(want, c) }); !slices.Equal(kept, want) {
			rt.Fatalf("found %v, of which %v select; want %v", names(got), names(kept), names(want))
		}
		if !slices.IsSortedFunc(got, func(a, b *compiled) int { return slices.Index(s.deletion.all, a) - slices.Index(s.deletion.all, b) }) {
			rt.Fatalf("out of order: %v", names(got))
		}
	})
	if left == 0 {
		t.Error("the index never left a policy out")
	}
}

func names(list []*compiled) []string {
	var out []string
	for _, c := range list {
		out = append(out, c.key.Name)
	}
	return out
}

func TestTeamsArePutApart(t *testing.T) {
	var b strings.Builder
	for i := range 100 {
		fmt.Fprintf(&b, "---\n{apiVersion: weir.dev/v1alpha1, kind: DeletionPolicy, metadata: {name: p%d}, spec: {match: {resources: [{apiGroups: [apps], resources: [deployments]}], "+
			"objectSelector: {matchLabels: {env: prod}}, namespaceSelector: {matchLabels: {team: 't%d'}}}, propagation: {default: Orphan}}}\n", i, i)
	}
	s := Build(nil, sources(t, "f", b.String()), Options{})
	q := web(map[string]any{"labels": map[string]any{"env": "prod"}})
	q.NamespaceObject = map[string]any{"metadata": map[string]any{"labels": map[string]any{"team": "t7"}}}
	if got := names(s.deletion.perhaps(&q).policies); !slices.Equal(got, []string{"p7"}) {
		t.Errorf("%v may select, want p7 alone", got)
	}
}

const fails = `conditions: [{name: c, expression: "oldObject.nothing == 'x'"}]`

// A policy is heard, and fails, only where its answer makes a difference.
func TestWhoIsAsked(t *testing.T) {
	policy := func(name string, priority int, match, rest string) string {
		return fmt.Sprintf("---\n{apiVersion: weir.dev/v1alpha1, kind: DeletionPolicy, metadata: {name: %s}, spec: {failurePolicy: Fail, priority: %d, match: {resources: [{apiGroups: [apps], resources: [deployments]}], %s}, %s}}\n",
			name, priority, match, rest)
	}
	orphan, limit := "propagation: {default: Orphan}", "protection: {maxDependents: 3}"
	five := func(Search, int) (AlsoDeleted, bool) {
		return AlsoDeleted{Kinds: []KindCount{{Resource: "pods", Count: 5}}}, true
	}
	two := func(Search, int) (AlsoDeleted, bool) {
		return AlsoDeleted{Kinds: []KindCount{{Resource: "pods", Count: 2}}}, true
	}
	atLeastTwo := func(Search, int) (AlsoDeleted, bool) {
		return AlsoDeleted{Kinds: []KindCount{{Resource: "pods", Count: 2}}}, false
	}
	background := "propagation: {default: Background}"
	for name, c := range map[string]struct {
		policies    string
		alsoDeleted func(Search, int) (AlsoDeleted, bool)
		failed      []string
	}{
		"propagation behind one that holds":              {policy("a", 2, "", orphan) + policy("b", 1, fails, orphan), nil, nil},
		"propagation before one that holds":              {policy("a", 1, "", orphan) + policy("b", 2, fails, orphan), nil, []string{"b"}},
		"propagation, and none holds":                    {policy("a", 1, "objectSelector: {matchLabels: {no: body}}", orphan) + policy("b", 0, fails, orphan), nil, []string{"b"}},
		"a limit that is not reached":                    {policy("a", 1, fails, limit), two, nil},
		"a limit that is not reached, behind another":    {policy("a", 2, "", limit) + policy("b", 1, fails, limit), two, nil},
		"a limit that is not reached, before another":    {policy("a", 1, "", limit) + policy("b", 2, fails, limit), two, nil},
		"a limit that is reached":                        {policy("a", 1, fails, limit), five, []string{"a"}},
		"a limit that may be reached":                    {policy("a", 1, fails, limit), atLeastTwo, []string{"a"}},
		"a limit, of what is to be kept":                 {policy("a", 2, "", orphan) + policy("b", 1, fails, limit), five, nil},
		"a limit that is not reached, of the one's that": {policy("a", 1, fails, background+", "+limit), two, []string{"a"}}, // its propagation makes a difference
		"a confirmation":                                 {policy("a", 1, fails, "protection: {confirmation: Required}"), nil, []string{"a"}},
		"one that is broken":                             {policy("a", 2, "", orphan) + policy("b", 1, `conditions: [{name: c, expression: "(("}]`, orphan), nil, []string{"b"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := Build(nil, sources(t, "f", c.policies), Options{})
			q := web(nil)
			q.Options = map[string]any{"propagationPolicy": "Background"}
			q.Facts.Dependents = c.alsoDeleted
			d := s.Decide(q)
			var failed []string
			for _, e := range d.Errors {
				failed = append(failed, e.Policy.Name)
			}
			if !slices.Equal(failed, c.failed) {
				t.Errorf("failed: %v, want %v", d.Errors, c.failed)
			}
			if refused := d.Audit[AuditRefused]; strings.Contains(refused, "cannot be judged") != (len(c.failed) > 0) {
				t.Errorf("refused: %q", refused)
			}
		})
	}
	// No policy that is not asked keeps back-fill from removing the finalizer.
	s := Build(nil, sources(t, "f", policy("a", 1, fails, limit)), Options{})
	if m, errs := s.FinalizersFor(Stored(deployments.GroupVersion().WithKind("Deployment"), deployments, web(map[string]any{"finalizers": []any{v1alpha1.Finalizer}}).OldObject, nil)); m.By != "" || len(errs) > 0 {
		t.Errorf("%+v %v", m, errs)
	}
}

func TestAnExpressionOfManyPoliciesIsAskedOnce(t *testing.T) {
	shared, own := `conditions: [{name: c, expression: "oldObject.metadata.name == 'other'"}]`, `conditions: [{name: c, expression: "oldObject.metadata.name == 'mine'"}]`
	policy := func(name, match string) string {
		return fmt.Sprintf("---\n{apiVersion: weir.dev/v1alpha1, kind: DeletionPolicy, metadata: {name: %s}, spec: {match: {resources: [{apiGroups: [apps], resources: [deployments]}], %s}, propagation: {default: Orphan}}}\n", name, match)
	}
	s := Build(nil, sources(t, "f", policy("a", shared)+policy("b", own)+policy("c", shared)), Options{})
	q := web(nil)
	if len(s.deletion.shared) != 1 {
		t.Fatalf("shared: %v", s.deletion.shared)
	}
	metadata := q.OldObject["metadata"].(map[string]any)
	metadata["name"] = "other"
	a := s.askDeletions(&q, &verdict{})
	if a.says(0) != saysYes {
		t.Fatalf("%s does not match", a.policies[0].key)
	}
	// What was asked for one counts for the other.
	metadata["name"] = "mine"
	if a.says(1) != saysYes || a.says(2) != saysYes {
		t.Errorf("said %v", a.said)
	}
}
