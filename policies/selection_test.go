package policies

import (
	"fmt"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"

	"github.com/weir-dev/weir/policies/v1beta1"
)

// relabels is an UPDATE of the ConfigMap x in namespace shop.
func relabels(was, is map[string]any) Question {
	q := deletes(Facts{})
	q.Operation, q.Resource, q.Name, q.Options = Update, configMaps, "x", nil
	q.Kind = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	q.OldObject, q.Object = configMap("x", was), configMap("x", is)
	return q
}

// An update that takes an object out of what protects it is judged as its delete, by whom that is
// judged, and the API server brings to Weir what is.
func TestLeavingProtectionIsJudgedAsTheDelete(t *testing.T) {
	labelled := func(l ...string) map[string]any {
		m := map[string]any{}
		for i := 0; i < len(l); i += 2 {
			m[l[i]] = l[i+1]
		}
		return map[string]any{"labels": m}
	}
	annotated := func(value string) map[string]any {
		m := labelled("keep", "yes")
		m["annotations"] = map[string]any{"keep": value}
		return m
	}
	confirmed := func(value string) map[string]any {
		return map[string]any{"annotations": map[string]any{v1beta1.ConfirmDeleteAnnotation: value}}
	}
	const selector = ", objectSelector: {matchLabels: {keep: 'yes'}}"
	const condition = `, matchConditions: [{name: c, expression: "oldObject.metadata.annotations['keep'] == 'yes'"}]`
	const says = `configmaps "x" in namespace "shop" may not be updated without confirmation: it would no longer be protected (DeletionPolicy "p"). ` +
		`To update it, confirm and update again: kubectl annotate configmaps x -n shop --overwrite weir.dev/confirm-delete=uid-x`
	for name, c := range map[string]struct {
		match, rest string
		was, is     map[string]any
		with        func(*Question)
		refuses     string
	}{
		"the label goes":               {selector, "", labelled("keep", "yes"), nil, nil, says},
		"it changes":                   {selector, "", labelled("keep", "yes"), labelled("keep", "no"), nil, says},
		"another label goes":           {selector, "", labelled("keep", "yes", "a", "b"), labelled("keep", "yes"), nil, ""},
		"it comes":                     {selector, "", nil, labelled("keep", "yes"), nil, ""},
		"by a label that comes":        {", objectSelector: {matchExpressions: [{key: test, operator: DoesNotExist}]}", "", nil, labelled("test", ""), nil, says},
		"a condition is false then":    {selector + condition, "", annotated("yes"), annotated("no"), nil, says},
		"it fails then":                {selector + condition, "", annotated("yes"), labelled("keep", "yes"), nil, says},
		"it failed before":             {selector + condition, "", labelled("keep", "yes"), annotated("no"), nil, ""},
		"it failed before, under Fail": {selector + condition, "}, failurePolicy: Fail, brake: {maxObjects: 9", labelled("keep", "yes"), annotated("no"), nil, "the policy's failurePolicy is Fail"},
		"and fails again":              {selector + condition, "}, failurePolicy: Fail, brake: {maxObjects: 9", labelled("keep", "yes"), labelled("keep", "yes", "a", "b"), nil, ""},
		"it was not about it":          {selector + condition, "", annotated("no"), labelled(), nil, ""},
		"what is in it is its writer's": {", matchConditions: [{name: c, expression: 'has(oldObject.data)'}]", "", map[string]any{}, map[string]any{}, func(q *Question) {
			q.OldObject["data"] = map[string]any{"a": "b"}
		}, ""},
		"confirmed":                    {selector, "", merge(labelled("keep", "yes"), confirmed("uid-x")), nil, nil, ""},
		"confirmed by the same update": {selector, "", labelled("keep", "yes"), confirmed("uid-x"), nil, ""},
		"confirmed for some objects":   {selector, "", merge(labelled("keep", "yes"), confirmed("uid-x/abc")), nil, nil, ""},
		"confirmed for another":        {selector, "", merge(labelled("keep", "yes"), confirmed("uid-y")), nil, nil, says},
		"with a limit":                 {selector, ", maxDependents: 3", labelled("keep", "yes"), nil, nil, says},
		"with inCascades: Ignore":      {selector, ", inCascades: Ignore", labelled("keep", "yes"), nil, nil, says},
		"it may":                       {selector, ", guardSelection: Ignore", labelled("keep", "yes"), nil, nil, ""},
		"who is excluded":              {selector + ", excludeUsers: [alice]", "", labelled("keep", "yes"), nil, nil, ""},
		"a controller": {selector, "", labelled("keep", "yes"), nil, func(q *Question) {
			q.User.Name = "system:serviceaccount:kube-system:job-controller"
		}, ""},
		"the collector": {selector, "", labelled("keep", "yes"), nil, func(q *Question) { q.User.Name = GarbageCollector }, ""},
		"Weir":          {selector, "", labelled("keep", "yes"), nil, func(q *Question) { q.User.Name = "weir" }, ""},
		"its status":    {selector, "", labelled("keep", "yes"), nil, func(q *Question) { q.Subresource = "status" }, says},
		"its scale":     {selector, "", labelled("keep", "yes"), nil, func(q *Question) { q.Subresource = "scale" }, ""},
		"it terminates": {selector, "", merge(labelled("keep", "yes"), map[string]any{"deletionTimestamp": "now"}), nil, nil, ""},
		"where all of it goes": {selector, "", labelled("keep", "yes"), nil, func(q *Question) {
			q.NamespaceObject = map[string]any{"metadata": map[string]any{"name": "shop", "deletionTimestamp": "now"}}
		}, says},
		"where all of it goes, and nothing is kept": {selector, ", inCascades: Ignore", labelled("keep", "yes"), nil, func(q *Question) {
			q.NamespaceObject = map[string]any{"metadata": map[string]any{"name": "shop", "deletionTimestamp": "now"}}
		}, ""},
		"on trial": {selector, "}, validationActions: [Warn], brake: {maxObjects: 9", labelled("keep", "yes"), nil, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			set := Build(nil, sources(t, "f", protects("p", c.match, "confirmation: Required"+c.rest+"}")), Options{Self: []string{"weir"}})
			if p := fmt.Sprint(set.Problems()); strings.Contains(p, "Invalid") {
				t.Fatal(p)
			}
			q := relabels(c.was, c.is)
			if c.with != nil {
				c.with(&q)
			}
			d, asked := asTheAPIServer(t, set, WebhookSelection, q)
			if d.Allowed != (c.refuses == "") || !strings.Contains(d.Message, c.refuses) || c.refuses != "" && len(asked) == 0 {
				t.Errorf("allowed=%t %s\nasked %v, want %q", d.Allowed, d.Message, asked, c.refuses)
			}
			if trial := name == "on trial"; trial != (len(d.Warnings) == 1) {
				t.Errorf("warnings %q", d.Warnings)
			}
		})
	}
}

func merge(a, b map[string]any) map[string]any {
	for k, v := range b {
		a[k] = v
	}
	return a
}

// The API server selects a Namespace that is updated by its new labels, which the selector of an
// entry must not be about.
func TestANamespaceDoesNotLeaveItsOwnSelector(t *testing.T) {
	text := strings.ReplaceAll(protects("p", ", namespaceSelector: {matchLabels: {env: prod}}", "confirmation: Required}"), "configmaps", "namespaces")
	q := relabels(map[string]any{"labels": map[string]any{"env": "prod"}}, nil)
	q.Resource.Resource, q.Kind.Kind, q.Namespace, q.NamespaceObject = "namespaces", "Namespace", "x", q.Object
	if d, asked := asTheAPIServer(t, Build(nil, sources(t, "f", text), Options{}), WebhookSelection, q); d.Allowed || len(asked) != 1 {
		t.Errorf("asked %v: %+v", asked, d)
	}
}

// Whatever selectors say, no update comes to Weir by which no object leaves one, and each does that
// is refused. Of a Namespace its own labels count, for both selectors.
func TestOnlyUpdatesThatLeaveASelectorCome(t *testing.T) {
	refused, dropped := 0, 0
	keys, values := rapid.SampledFrom([]string{"a", "b", "it's/odd"}), rapid.SampledFrom([]string{"1", "2", ""})
	rapid.Check(t, func(rt *rapid.T) {
		selector := func(name string) string {
			var out []string
			for range rapid.IntRange(0, 2).Draw(rt, name) {
				op := rapid.SampledFrom([]string{"In", "NotIn", "Exists", "DoesNotExist"}).Draw(rt, "operator")
				e := fmt.Sprintf("{key: %q, operator: %s", strings.ReplaceAll(keys.Draw(rt, "key"), "'", "-"), op)
				if strings.HasSuffix(op, "In") {
					e += fmt.Sprintf(", values: [%q, %q]", values.Draw(rt, "value"), values.Draw(rt, "value"))
				}
				out = append(out, e+"}")
			}
			return ", " + name + ": {matchExpressions: [" + strings.Join(out, ", ") + "]}"
		}
		var text strings.Builder
		for i := range rapid.IntRange(1, 3).Draw(rt, "policies") {
			match := selector("objectSelector") + selector("namespaceSelector")
			text.WriteString(strings.ReplaceAll(protects(fmt.Sprintf("p%d", i), match, "confirmation: Required}"),
				"[configmaps]", rapid.SampledFrom([]string{"[configmaps]", "[namespaces]", "[configmaps, namespaces]"}).Draw(rt, "resources")))
		}
		set := Build(nil, sources(t, "f", text.String()), Options{})
		labelled := func(name string) map[string]any {
			l := map[string]any{}
			for k, v := range rapid.MapOfN(keys, values, 0, 2).Draw(rt, name) {
				l[strings.ReplaceAll(k, "'", "-")] = v
			}
			if len(l) == 0 && rapid.Bool().Draw(rt, "without labels") {
				return nil
			}
			return map[string]any{"labels": l}
		}
		q := relabels(labelled("was"), labelled("is"))
		q.NamespaceObject = map[string]any{"metadata": labelled("namespace")}
		if rapid.Bool().Draw(rt, "a Namespace") {
			q.Resource, q.Kind, q.Namespace, q.NamespaceObject = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, "x", q.Object
		}
		d, asked := asTheAPIServer(rt, set, WebhookSelection, q)
		want := set.Decide(q)
		if d.Allowed != want.Allowed {
			rt.Fatalf("asked %d: allowed=%t, all policies say %t %s\n%s\n%v\n%v", len(asked), d.Allowed, want.Allowed, want.Message, text.String(), q.OldObject, q.Object)
		}
		same := fmt.Sprint(object(q.OldObject).labels()) == fmt.Sprint(object(q.Object).labels())
		switch {
		case same && len(asked) > 0:
			rt.Fatalf("nothing changes, and it comes:\n%s", text.String())
		case !d.Allowed:
			refused++
		case len(asked) == 0:
			dropped++
		}
	})
	if refused == 0 || dropped == 0 {
		t.Errorf("%d were refused, %d did not come: that shows little", refused, dropped)
	}
}

// While Weir is away, updates that take an object out of a selector are up to the failurePolicy;
// what only a condition could tell never waits.
func TestUpdatesWaitOnlyForWhatTheAPIServerCanTell(t *testing.T) {
	const selector = ", objectSelector: {matchLabels: {keep: 'yes'}}"
	const condition = `, matchConditions: [{name: c, expression: "'keep' in oldObject.metadata.annotations"}]`
	for match, want := range map[string]string{
		"":                   "",
		selector:             "fail.selection.weir.dev Fail [configmaps configmaps/status] leaves, system.fail.selection.weir.dev Ignore [configmaps configmaps/status] leaves",
		condition:            "fail.conditions.selection.weir.dev Ignore [configmaps configmaps/status] selection-changes",
		selector + condition: "fail.conditions.selection.weir.dev Ignore [configmaps configmaps/status] selection-changes, fail.selection.weir.dev Fail [configmaps configmaps/status] leaves, system.fail.selection.weir.dev Ignore [configmaps configmaps/status] leaves",
		", matchConditions: [{name: c, expression: 'has(oldObject.data)'}]": "",
		", namespaceSelector: {matchLabels: {keep: 'yes'}}":                 "", // it is about no Namespace
	} {
		set := Build(nil, sources(t, "f", protects("p", match, "confirmation: Required}, failurePolicy: Fail")), Options{})
		var got []string
		for _, w := range set.Webhooks(keptKinds, nil) {
			if w.Webhook != WebhookSelection {
				continue
			}
			name := ""
			for _, m := range w.MatchConditions {
				if m.Name == "leaves" || m.Name == "selection-changes" {
					name = m.Name
				}
				if m.Name == "selection-changes" && (strings.Contains(m.Expression, "finalizers") || !strings.Contains(m.Expression, "annotations")) {
					t.Errorf("%s: comes when %s", match, m.Expression)
				}
			}
			got = append(got, fmt.Sprintf("%s %s %v %s", w.Name, w.FailurePolicy, w.Rules[0].Resources, name))
			if ops := w.Rules[0].Operations; len(ops) != 1 || ops[0] != admissionregistrationv1.Update {
				t.Errorf("%s: %v", w.Name, ops)
			}
		}
		if s := strings.Join(got, ", "); s != want {
			t.Errorf("%s\n got %s\nwant %s", match, s, want)
		}
	}
}
