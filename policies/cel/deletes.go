package cel

import (
	"maps"
	"slices"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	admissioncel "k8s.io/apiserver/pkg/admission/plugin/cel"
)

// NeverOfADelete tells whether an expression cannot be true because the request is the DELETE of an
// object: it would have another operation, or a subresource.
func NeverOfADelete(expression string) bool { return neverTrue(expression, ofADelete) }

// ofADelete is what is known of the request.
func ofADelete(e ast.Expr) outcomes {
	switch e.Kind() {
	case ast.SelectKind:
		s := e.AsSelect()
		if !isVariable(s.Operand(), admissioncel.RequestVarName) ||
			s.FieldName() != "subResource" && s.FieldName() != "requestSubResource" {
			return 0
		}
		if s.IsTestOnly() {
			return isFalse
		}
		return isError
	case ast.CallKind:
		return ofOperation(e.AsCall())
	}
	return 0
}

// ofOperation: request.operation == 'UPDATE', request.operation in ['CREATE', 'UPDATE'].
func ofOperation(c ast.CallExpr) outcomes {
	if len(c.Args()) != 2 {
		return 0
	}
	a, b := c.Args()[0], c.Args()[1]
	switch {
	case c.FunctionName() == operators.In && isOperation(a) && literals(b):
		return truth(slices.ContainsFunc(b.AsList().Elements(), isDelete))
	case isOperation(b):
		a, b = b, a
	}
	if !isOperation(a) || !literal(b) {
		return 0
	}
	switch c.FunctionName() {
	case operators.Equals:
		return truth(isDelete(b))
	case operators.NotEquals:
		return truth(!isDelete(b))
	}
	return 0
}

func isOperation(e ast.Expr) bool {
	return isRequest(e, "operation")
}

func isDelete(e ast.Expr) bool { return literal(e) && e.AsLiteral() == types.String("DELETE") }

func truth(yes bool) outcomes {
	if yes {
		return isTrue
	}
	return isFalse
}

// UnaskedOptions are the fields of request.options that one of some expressions reads, and of which
// none asks whether it is there: a client sets those that it wants.
func UnaskedOptions(expressions ...string) []string {
	read, asked := map[string]bool{}, map[string]bool{}
	for _, text := range expressions {
		finds(text, func(e ast.Expr) bool {
			switch e.Kind() {
			case ast.SelectKind:
				if s := e.AsSelect(); isOptions(s.Operand()) && s.IsTestOnly() {
					asked[s.FieldName()] = true
				} else if isOptions(s.Operand()) {
					read[s.FieldName()] = true
				}
			case ast.CallKind:
				switch args := e.AsCall().Args(); {
				case e.AsCall().FunctionName() == operators.Index && isOptions(args[0]):
					read[stringOf(args[1])] = true
				case e.AsCall().FunctionName() == operators.In && isOptions(args[1]):
					asked[stringOf(args[0])] = true
				}
			}
			return false
		})
	}
	maps.DeleteFunc(read, func(field string, _ bool) bool { return field == "" || asked[field] })
	return slices.Sorted(maps.Keys(read))
}

func isOptions(e ast.Expr) bool {
	return isRequest(e, "options")
}

// stringOf is a literal's; empty for what is none.
func stringOf(e ast.Expr) string {
	if !literal(e) {
		return ""
	}
	s, _ := e.AsLiteral().Value().(string)
	return s
}

// isRequest tells whether an expression is a field of the request: request.FIELD.
func isRequest(e ast.Expr, field string) bool {
	return e.Kind() == ast.SelectKind && !e.AsSelect().IsTestOnly() && e.AsSelect().FieldName() == field &&
		isVariable(e.AsSelect().Operand(), admissioncel.RequestVarName)
}
