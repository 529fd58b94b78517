package cel

import (
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
)

// Mentions reports whether an expression names a variable.
func Mentions(expression, variable string) bool {
	return finds(expression, func(e ast.Expr) bool { return isVariable(e, variable) })
}

// LooksInto reports whether an expression reads a field of a variable.
func LooksInto(expression, variable string) bool {
	return finds(expression, func(e ast.Expr) bool {
		switch e.Kind() {
		case ast.SelectKind:
			return isVariable(e.AsSelect().Operand(), variable)
		case ast.CallKind:
			c := e.AsCall()
			return c.FunctionName() == operators.Index && isVariable(c.Args()[0], variable)
		}
		return false
	})
}

func finds(expression string, is func(ast.Expr) bool) bool {
	parsed, issues := parser().Parse(expression)
	if issues.Err() != nil {
		return false
	}
	found := false
	visitor := ast.NewExprVisitor(func(e ast.Expr) { found = found || is(e) })
	ast.PostOrderVisit(parsed.NativeRep().Expr(), visitor)
	return found
}

func isVariable(e ast.Expr, name string) bool {
	return e.Kind() == ast.IdentKind && (e.AsIdent() == name || e.AsIdent() == "."+name)
}
