package cel

import (
	"testing"

	"github.com/google/cel-go/common/types"
	"github.com/google/go-cmp/cmp"
)

// Each verdict is checked against what CEL makes of the expression at a DELETE.
func TestConditionsThatNeverHoldOfADelete(t *testing.T) {
	for expression, never := range map[string]bool{
		"request.subResource == 'eviction'":                                       true,
		"has(request.subResource) && request.subResource == 'eviction'":           true,
		"has(request.requestSubResource)":                                         true,
		"request.operation == 'UPDATE'":                                           true,
		"'CREATE' == request.operation || request.operation in ['UPDATE']":        true,
		"request.operation != 'DELETE'":                                           true,
		"!has(request.subResource)":                                               false,
		"!has(request.subResource) || request.subResource == ''":                  false,
		"request.operation == 'DELETE'":                                           false,
		"request.operation in ['DELETE', 'UPDATE']":                               false,
		"request.operation == oldObject.kind":                                     false,
		"request.operation != 'DELETE' || oldObject.kind == 'x'":                  false,
		"request.?subResource.orValue('') == ''":                                  false,
		"oldObject.subResource == 'eviction'":                                     false,
		"oldObject.request.operation == 'UPDATE'":                                 false,
		"has(request.options.propagationPolicy) && request.operation == 'CREATE'": true,
	} {
		if got := NeverOfADelete(expression); got != never {
			t.Errorf("%s: never true: %t, want %t", expression, got, never)
		}
		compiled := mustCompile(t, expression)
		e := Evaluate(&values{oldObject: map[string]any{"kind": "x", "subResource": "eviction",
			"request": map[string]any{"operation": "UPDATE"}},
			request: map[string]any{"operation": "DELETE", "object": nil, "oldObject": nil, "options": map[string]any{}}}, nil)
		if val, _, err := compiled.program.Eval(&e); err == nil && val == types.True && never {
			t.Errorf("%s holds", expression)
		}
	}
}

func TestOptionsThatMayNotBeThere(t *testing.T) {
	for _, c := range []struct {
		expressions, want []string
	}{
		{[]string{"request.options.propagationPolicy == 'Orphan'"}, []string{"propagationPolicy"}},
		{[]string{"request.options['propagationPolicy'] == 'Orphan' && request.options.gracePeriodSeconds == 0"},
			[]string{"gracePeriodSeconds", "propagationPolicy"}},
		{[]string{"has(request.options.propagationPolicy) && request.options.propagationPolicy == 'Orphan'"}, nil},
		{[]string{"'propagationPolicy' in request.options && request.options['propagationPolicy'] == 'Orphan'"}, nil},
		{[]string{"request.options.gracePeriodSeconds == 0", "has(request.options.gracePeriodSeconds)"}, nil},
		{[]string{"request.options.?propagationPolicy.orValue('') == 'Orphan'"}, nil},
		{[]string{"oldObject.options.propagationPolicy == 'Orphan'"}, nil},
	} {
		if diff := cmp.Diff(c.want, UnaskedOptions(c.expressions...)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", c.expressions, diff)
		}
	}
}
