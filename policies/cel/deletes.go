package cel

import (
	"maps"
	"slices"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	admissioncel "k8s.io/apiserver/pkg/admission/plugin/cel"
)

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

// stringOf returns the value of a string literal; empty for anything else.
func stringOf(e ast.Expr) string {
	if !literal(e) {
		return ""
	}
	s, _ := e.AsLiteral().Value().(string)
	return s
}

// isRequest reports whether an expression is a field of the request: request.FIELD.
func isRequest(e ast.Expr, field string) bool {
	return e.Kind() == ast.SelectKind && !e.AsSelect().IsTestOnly() && e.AsSelect().FieldName() == field &&
		isVariable(e.AsSelect().Operand(), admissioncel.RequestVarName)
}
