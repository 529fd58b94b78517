package cel

import (
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	admissioncel "k8s.io/apiserver/pkg/admission/plugin/cel"
)

// Half of the time that CEL takes for a short expression goes into setting up its meter. An
// expression without loops that compares only with literals needs none. Each of its steps costs at
// most the length of its literal, so all of it costs at most the length of the expression, and the
// longest that the schema allows costs less than a hundredth of the limit. Results and errors are
// the same.

// unmeteredEnv is the part of CEL that bounded knows. What passed the API server's compiler and
// bounded means the same in it.
var unmeteredEnv = sync.OnceValue(func() *cel.Env {
	env, err := cel.NewEnv(
		cel.Variable(admissioncel.ObjectVarName, cel.DynType), cel.Variable(admissioncel.OldObjectVarName, cel.DynType),
		cel.Variable(admissioncel.RequestVarName, cel.DynType), cel.Variable(admissioncel.NamespaceVarName, cel.DynType),
		cel.CrossTypeNumericComparisons(true), cel.HomogeneousAggregateLiterals(),
	)
	if err != nil {
		panic("cel: CEL without a bound: " + err.Error())
	}
	return env
})

// unmetered returns a program without a meter, or nil for an expression that needs one.
func unmetered(expression string) cel.Program {
	checked, issues := unmeteredEnv().Compile(expression)
	if issues.Err() != nil || !bounded(checked.NativeRep().Expr()) {
		return nil
	}
	program, err := unmeteredEnv().Program(checked, cel.EvalOptions(cel.OptOptimize))
	if err != nil {
		return nil
	}
	return program
}

// bounded reports whether an expression costs no more than its length.
func bounded(e ast.Expr) bool {
	switch e.Kind() {
	case ast.LiteralKind, ast.IdentKind:
		return true
	case ast.SelectKind:
		return bounded(e.AsSelect().Operand())
	case ast.CallKind:
		return boundedCall(e.AsCall())
	}
	return false
}

func boundedCall(c ast.CallExpr) bool {
	for _, a := range c.Args() {
		if c.FunctionName() != operators.In && !bounded(a) {
			return false
		}
	}
	switch c.FunctionName() {
	case operators.LogicalAnd, operators.LogicalOr, operators.LogicalNot, operators.Conditional:
		return true
	case operators.Equals, operators.NotEquals,
		operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals:
		return literal(c.Args()[0]) || literal(c.Args()[1])
	case operators.In:
		return bounded(c.Args()[0]) && literals(c.Args()[1])
	case "startsWith", "endsWith":
		return c.IsMemberFunction() && bounded(c.Target()) && literal(c.Args()[0])
	}
	return false
}

func literal(e ast.Expr) bool { return e.Kind() == ast.LiteralKind }

func literals(e ast.Expr) bool {
	if e.Kind() != ast.ListKind {
		return false
	}
	for _, x := range e.AsList().Elements() {
		if !literal(x) {
			return false
		}
	}
	return true
}
