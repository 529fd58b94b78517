package policies

import (
	"fmt"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	"github.com/weir-dev/weir/policies/cel"
)

const fullObject = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"web","generation":3,"labels":{"env":"prod","v":"1"},
	"managedFields":[{"manager":"kubectl"}],"annotations":{"a\"b":"\u00e9"}},"spec":{"n":2,"x":1.5},"data":{"env":"prod"}}`

// What a condition says does not depend on how much of the object was decoded before.
func TestConditionsSeeAllOfAnObject(t *testing.T) {
	var full map[string]any
	if err := decode([]byte(fullObject), &full); err != nil {
		t.Fatal(err)
	}
	answered := map[string]int{}
	check := func(t *rapid.T) {
		text := someCondition(t)
		one, err := cel.Compile("c", text, "c")
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		c := []cel.Condition{one}
		q, err := FromRequest(&admissionv1.AdmissionRequest{Operation: admissionv1.Delete, OldObject: runtime.RawExtension{Raw: []byte(fullObject)}})
		if err != nil {
			t.Fatal(err)
		}
		if q.OldObject["spec"] != nil {
			t.Fatal("the object was decoded whole before anyone asked")
		}
		want, wantErr := all(&Question{Operation: Delete, OldObject: full}, c)
		got, gotErr := all(&q, c)
		if got != want || (gotErr == nil) != (wantErr == nil) {
			t.Fatalf("%s: %t (%v), of the whole object %t (%v)", text, got, gotErr, want, wantErr)
		}
		if decoded := q.oldObject.all != nil; decoded && c[0].MetadataOnly() {
			t.Fatalf("%s: decoded all of the object", text)
		}
		switch {
		case want:
			answered["true"]++
		case wantErr != nil:
			answered["error"]++
		default:
			answered["false"]++
		}
	}
	rapid.Check(t, check)
	if answered["true"] == 0 || answered["false"] == 0 || answered["error"] == 0 {
		t.Errorf("not every outcome was tried: %v", answered)
	}
}

func all(q *Question, conditions []cel.Condition) (bool, error) {
	e := evaluate(q)
	return e.All(conditions)
}

// someCondition is one that compiles, of some that look at metadata and others that look further.
func someCondition(t *rapid.T) string {
	term := rapid.SampledFrom([]string{
		"oldObject.metadata.generation == 3", "oldObject.metadata.labels.v == '1'", "size(oldObject.metadata) == 5", "oldObject.spec.x == 1.5",
		"oldObject.metadata.managedFields[0].manager == 'kubectl'", "oldObject.metadata.annotations['a\"b'] == 'é'", ".oldObject.data.env == 'prod'",
		"oldObject.metadata.labels.all(k, v, has(oldObject.metadata.labels) && k != v)", "has(oldObject.metadata.finalizers)", "'data' in oldObject",
		"oldObject.missing < 2", "oldObject.spec.n in [2, 3]", "object == null", "request.operation == 'DELETE'", "namespaceObject != null",
	})
	text := term.Draw(t, "term")
	for range rapid.IntRange(0, 4).Draw(t, "more") {
		switch next := term.Draw(t, "term"); rapid.SampledFrom([]string{"&&", "||", "!", "?"}).Draw(t, "operator") {
		case "&&":
			text = "(" + text + " && " + next + ")"
		case "||":
			text = "(" + next + " || " + text + ")"
		case "!":
			text = "!(" + text + ")"
		case "?":
			text = "(" + text + " ? " + next + " : " + term.Draw(t, "term") + ")"
		}
	}
	return text
}

func TestConditionsThatCannotBeMeantAreErrors(t *testing.T) {
	for rest, want := range map[string]string{
		"protection: {maxDependents: 0}; object.spec.replicas > 1":                             "1: warning: conditions are evaluated as for a DELETE",
		"protection: {maxDependents: 0}; object.spec.x || oldObject.spec.x":                    "1: warning: conditions are evaluated as for a DELETE",
		"protection: {maxDependents: 0}; oldObject.spec.replicas > 1":                          "",
		"protection: {maxDependents: 0}; request.userInfo.username == 'bob'":                   "",
		"propagation: {default: Foreground}; request.userInfo.username == 'bob'":               "1: error: a policy with propagation.default cannot use request in conditions",
		"propagation: {annotation: Allow}; request.userInfo.username == 'bob'":                 "1: error: a policy with propagation.annotation cannot use request in conditions",
		"propagation: {default: Foreground}; oldObject.metadata.annotations['request'] == 'x'": "",
	} {
		spec, expression, _ := strings.Cut(rest, "; ")
		text := "apiVersion: weir.dev/v1beta1\nkind: DeletionPolicy\nmetadata: {name: p}\nspec:\n  match: {resources: [{apiGroups: [apps], resources: [deployments]}], matchConditions: [{name: c, expression: \"" + expression + "\"}]}\n  " + spec + "\n"
		var got []string
		set := Build(nil, sources(t, "p.yaml", text), Options{})
		for _, p := range set.Problems() {
			level := "error"
			if p.Warning {
				level = "warning"
			}
			message, _, _ := strings.Cut(p.Message, ",")
			message, _, _ = strings.Cut(message, ":")
			got = append(got, fmt.Sprintf("%d: %s: %s", p.Line, level, message))
		}
		if len(got) == 0 && want == "" {
			continue
		}
		if len(got) != 1 || !strings.HasPrefix(got[0], want) || want == "" {
			t.Errorf("%s: %v, want %s", rest, got, want)
		}
		if ready := set.Statuses()[0].Ready; ready != !strings.Contains(want, "error") {
			t.Errorf("%s: ready: %t", rest, ready)
		}
	}
}
