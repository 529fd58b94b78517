package cel

import (
	"testing"

	"github.com/google/cel-go/common/types"
)

// What never holds is an error, and nothing else is: each verdict is checked against what CEL makes
// of the expression with objects of all sorts.
func TestConditionsThatNeverHold(t *testing.T) {
	for expression, never := range map[string]bool{
		"object.spec.replicas > 1":                                true,
		"1 < object.spec.replicas":                                true,
		"oldObject.spec.replicas < object.spec.replicas":          true,
		"oldObject.spec.replicas != object.spec.replicas":         true,
		"has(object.spec)":                                        true,
		"!has(object.spec.replicas)":                              true,
		"object != null":                                          true,
		"null != object":                                          true,
		"object != null && object.spec.replicas > 1":              true,
		"oldObject.spec.replicas > 1 && object.spec.replicas > 1": true,
		"object['spec'].replicas > 1":                             true,
		"object.spec.list.exists(x, x == 1)":                      true,
		"oldObject.spec.replicas in [object.spec.replicas]":       true,
		"string(object.spec.replicas).startsWith('1')":            true,
		"object == null ? object.spec.replicas > 1 : true":        true,
		"object == 1":                                                    true,
		"(object.spec.replicas > 1) == false":                            true,
		".object.spec.replicas > 1":                                      true,
		"oldObject.spec.replicas > 1":                                    false,
		"!has(object.spec)":                                              false,
		"object == null":                                                 false,
		"object == null || object.spec.replicas > 1":                     false,
		"object.spec.replicas > 1 || oldObject.spec.replicas > 1":        false,
		"(object == null ? oldObject : object).spec.replicas > 1":        false,
		"(object != null ? object.spec.x : oldObject.spec.replicas) > 1": false,
		"object == namespaceObject":                                      false,
		"!(object != null)":                                              false,
		"oldObject.spec.object.replicas > 1":                             false,
		"oldObject.spec.list.exists(object, object == 1)":                false,
		"dyn(object) == null":                                            false,
		"false":                                                          false,
		"true":                                                           false,
		"oldObject.spec.replicas > 1 || oldObject.spec.list.exists(x, x == object)": false,
	} {
		if got := NeverTrue(expression); got != never {
			t.Errorf("%s: never true: %t, want %t", expression, got, never)
		}
		if holdsForSome(t, expression) && never {
			t.Errorf("%s holds for some object", expression)
		}
	}
}

// holdsForSome asks CEL itself.
func holdsForSome(t *testing.T, expression string) bool {
	t.Helper()
	compiled, err := Compile("c", expression, "spec")
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	for _, spec := range []map[string]any{{}, {"replicas": int64(0)},
		{"replicas": int64(2), "list": []any{int64(1)}, "object": map[string]any{"replicas": int64(2)}}, {"replicas": "10"}} {
		e := Evaluate(&values{oldObject: map[string]any{"spec": spec}}, nil)
		if val, _, err := compiled.program.Eval(&e); err == nil && val == types.True {
			return true
		}
	}
	return false
}
