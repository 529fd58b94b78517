package cel

import (
	"slices"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// A condition about object in a DeletionPolicy compiles, and never holds: object is null at a
// DELETE. CEL finds that out request by request, and the policy would be Ready and protect nothing.
// So it is found in the syntax tree what an expression can come to while a variable is null;
// whatever is not understood can come to anything.

// outcomes are what an expression can come to.
type outcomes uint8

const (
	isTrue outcomes = 1 << iota
	isFalse
	isNullValue
	isOther
	isError
	anything = isTrue | isFalse | isNullValue | isOther | isError
)

func (o outcomes) can(x outcomes) bool { return o&x != 0 }

// only tells that nothing else can come of it.
func (o outcomes) only(x outcomes) bool { return o != 0 && o&^x == 0 }

// given is what is known of expressions beforehand; 0 of one of which nothing is.
type given func(ast.Expr) outcomes

// NeverTrue tells whether an expression cannot be true because a variable is null.
func NeverTrue(expression, null string) bool {
	return neverTrue(expression, func(e ast.Expr) outcomes {
		if isVariable(e, null) {
			return isNullValue
		}
		return 0
	})
}

func neverTrue(expression string, known given) bool {
	parsed, issues := parser().Parse(expression)
	if issues.Err() != nil {
		return false
	}
	e := parsed.NativeRep().Expr()
	return !outcomesOf(e, known).can(isTrue) && outcomesOf(e, func(ast.Expr) outcomes { return 0 }).can(isTrue)
}

// Mentions tells whether an expression is about a variable at all.
func Mentions(expression, variable string) bool {
	return finds(expression, func(e ast.Expr) bool { return isVariable(e, variable) })
}

// Calls tells whether an expression has a call of one of some functions.
func Calls(expression string, functions ...string) bool {
	return finds(expression, func(e ast.Expr) bool {
		return e.Kind() == ast.CallKind && slices.Contains(functions, e.AsCall().FunctionName())
	})
}

// LooksInto tells whether an expression reads a field of a variable.
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
	ast.PostOrderVisit(parsed.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) { found = found || is(e) }))
	return found
}

func isVariable(e ast.Expr, name string) bool {
	return e.Kind() == ast.IdentKind && (e.AsIdent() == name || e.AsIdent() == "."+name)
}

func outcomesOf(e ast.Expr, known given) outcomes {
	if is := known(e); is != 0 {
		return is
	}
	of := func(e ast.Expr) outcomes { return outcomesOf(e, known) }
	switch e.Kind() {
	case ast.LiteralKind:
		switch e.AsLiteral() {
		case types.True:
			return isTrue
		case types.False:
			return isFalse
		case types.NullValue:
			return isNullValue
		}
		return isOther
	case ast.SelectKind:
		switch o := of(e.AsSelect().Operand()); {
		case o.only(isError), o.only(isNullValue|isError) && !e.AsSelect().IsTestOnly():
			return isError
		case o.only(isNullValue | isError):
			return isFalse | isError // null has nothing
		}
	case ast.CallKind:
		return outcomesOfCall(e.AsCall(), of)
	case ast.ListKind:
		for _, x := range e.AsList().Elements() {
			if of(x).only(isError) {
				return isError
			}
		}
	case ast.ComprehensionKind:
		if of(e.AsComprehension().IterRange()).only(isError) {
			return isError
		}
	}
	return anything
}

func outcomesOfCall(c ast.CallExpr, of func(ast.Expr) outcomes) outcomes {
	args := c.Args()
	switch c.FunctionName() {
	case operators.LogicalAnd:
		a, b := of(args[0]), of(args[1])
		return logical(a, b, isTrue, isFalse)
	case operators.LogicalOr:
		a, b := of(args[0]), of(args[1])
		return logical(a, b, isFalse, isTrue)
	case operators.LogicalNot:
		return negated(of(args[0]))
	case operators.Conditional:
		var out outcomes
		test := of(args[0])
		if test.can(isTrue) {
			out |= of(args[1])
		}
		if test.can(isFalse) {
			out |= of(args[2])
		}
		if test.can(anything &^ (isTrue | isFalse)) {
			out |= isError
		}
		return out
	case operators.Equals:
		return equal(of(args[0]), of(args[1]))
	case operators.NotEquals:
		return negated(equal(of(args[0]), of(args[1])))
	case operators.Index:
		if of(args[0]).only(isNullValue | isError) {
			return isError
		}
	}
	// Every other function fails with an argument that failed.
	if c.IsMemberFunction() && of(c.Target()).only(isError) {
		return isError
	}
	for _, a := range args {
		if of(a).only(isError) {
			return isError
		}
	}
	return anything
}

// logical is && where both and one are true and false, and || the other way round: one of them
// decides by itself, and whatever the other is, or that it failed, does not matter then.
func logical(a, b, both, one outcomes) outcomes {
	var out outcomes
	if a.can(both) && b.can(both) {
		out |= both
	}
	if a.can(one) || b.can(one) {
		out |= one
	}
	if (a | b).can(anything &^ (isTrue | isFalse)) {
		out |= isError
	}
	return out
}

func negated(a outcomes) outcomes {
	out := a & isError
	if a.can(isTrue) {
		out |= isFalse
	}
	if a.can(isFalse) {
		out |= isTrue
	}
	if a.can(isNullValue | isOther) {
		out |= isError
	}
	return out
}

func equal(a, b outcomes) outcomes {
	out := (a | b) & isError
	values := anything &^ isError
	switch {
	case a.only(isError) || b.only(isError):
	case a&values == isNullValue && b&values == isNullValue:
		out |= isTrue
	case a&b&values == 0:
		out |= isFalse
	default:
		out |= isTrue | isFalse
	}
	return out
}
