package cel

import (
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	admissioncel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"pgregory.net/rapid"
)

func TestOnlyWhatIsCheapIsNotMetered(t *testing.T) {
	for expression, want := range map[string]bool{
		"true":                             true,
		"oldObject.metadata.name == 'web'": true,
		"'web' != oldObject.metadata.name": true,
		"has(oldObject.metadata.labels) && !(oldObject.metadata.name.startsWith('w') || oldObject.spec.replicas > 2)": true,
		"request.userInfo.username in ['a', 'b']":           true,
		"object == null ? false : object.spec.paused":       true,
		"oldObject.metadata.name == oldObject.metadata.uid": false, // both may be long
		"'a' in request.userInfo.groups":                    false, // may be long
		"oldObject.metadata.name in [oldObject.a]":          false,
		"oldObject.a.startsWith(oldObject.b)":               false,
		"oldObject.a.contains('b')":                         false,
		"oldObject.a.matches('b')":                          false,
		"oldObject.a.all(x, x == 1)":                        false,
		"size(oldObject.a) == 1":                            false,
		"oldObject.a + 'b' == 'c'":                          false,
		"oldObject.a.lowerAscii() == 'b'":                   false,
		"quantity('1').isGreaterThan(quantity('2'))":        false,
	} {
		if got := unmetered(expression) != nil; got != want {
			t.Errorf("%s: unmetered: %t", expression, got)
		}
	}
}

// An expression without a meter answers, and fails, exactly as the API server's does.
func TestUnmeteredMeansTheSame(t *testing.T) {
	answered := map[string]int{}
	check := func(t *rapid.T) {
		text := anyExpression(t, 3)
		fast := unmetered(text)
		if fast == nil {
			t.Fatalf("%s is not bounded", text)
		}
		slow := compiler().CompileCELExpression(expression{text, cel.BoolType}, admissioncel.OptionalVariableDeclarations{},
			environment.StoredExpressions)
		if slow.Error != nil {
			return // a policy with it would be broken
		}
		v := values{request: map[string]any{"operation": "DELETE", "userInfo": map[string]any{"username": "alice"}},
			oldObject: map[string]any{
				"metadata": map[string]any{"name": rapid.SampledFrom([]string{"", "web", "webs"}).Draw(t, "name")},
				"spec": map[string]any{"n": rapid.SampledFrom([]any{int64(0), int64(2), 2.0, 2.5, nil, true,
					"2", []any{}, map[string]any{}}).Draw(t, "n")},
			}}
		want, got := outcomeOf(slow.Program, &v), outcomeOf(fast, &v)
		answered[want[:1]]++
		if want != got {
			t.Fatalf("%s: %s, unmetered %s", text, want, got)
		}
	}
	for range 5 { // times rapid's own number of checks, each time with another seed
		rapid.Check(t, check)
	}
	if answered["t"] == 0 || answered["f"] == 0 || answered["e"] == 0 {
		t.Errorf("not every outcome was tried: %v", answered)
	}
}

func outcomeOf(p cel.Program, v *values) string {
	e := Evaluate(v, nil)
	val, details, err := p.Eval(&e)
	if details != nil && details.ActualCost() != nil && *details.ActualCost() > 4096 {
		return "costs more than it is long"
	}
	switch {
	case err != nil:
		return "error: " + err.Error()
	case val == types.True:
		return "true"
	case val == types.False:
		return "false"
	}
	return "no boolean"
}

func anyExpression(t *rapid.T, depth int) string {
	leaf := []string{"oldObject.metadata.name", "oldObject.spec.n", "oldObject.missing", "request.operation",
		"request.userInfo.username", "object", "namespaceObject"}
	lit := []string{"'web'", "''", "2", "2.0", "2u", "true", "null", "'DELETE'", "'alice'"}
	sub := func() string { return anyExpression(t, depth-1) }
	l := rapid.SampledFrom(leaf).Draw(t, "leaf")
	v := rapid.SampledFrom(lit).Draw(t, "literal")
	n := rapid.IntRange(0, 8).Draw(t, "form")
	if depth == 0 && n > 4 {
		n -= 5
	}
	switch n {
	case 0:
		return l + rapid.SampledFrom([]string{" == ", " != ", " < ", " <= ", " > ", " >= "}).Draw(t, "operator") + v
	case 1:
		return "has(oldObject.spec." + rapid.SampledFrom([]string{"n", "m"}).Draw(t, "field") + ")"
	case 2:
		return l + ".startsWith('we')"
	case 3:
		return l + " in ['web', 'DELETE', '']"
	case 4:
		return v + " == " + l
	case 5:
		return "(" + sub() + " && " + sub() + ")"
	case 6:
		return "(" + sub() + " || " + sub() + ")"
	case 7:
		return "!(" + sub() + ")"
	}
	return "(" + sub() + " ? " + sub() + " : " + sub() + ")"
}

func TestACheapConditionIsNotMeteredAndADearOneIs(t *testing.T) {
	for text, want := range map[string]bool{"oldObject.a == 'b'": false, "oldObject.a.all(x, x)": true} {
		if c := mustCompile(t, text); (c.most == 0) != want {
			t.Errorf("%s: metered: %t", text, !want)
		}
	}
}
