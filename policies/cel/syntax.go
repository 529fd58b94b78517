package cel

import (
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	admissioncel "k8s.io/apiserver/pkg/admission/plugin/cel"
)

// Most conditions are about labels, annotations and names. For those only an object's metadata is
// decoded.

// ManagedFields is left out of metadata: it is long, and conditions hardly ever read it.
const ManagedFields = "managedFields"

var parser = sync.OnceValue(func() *cel.Env {
	env, err := cel.NewEnv(cel.OptionalTypes())
	if err != nil {
		panic("cel: parse CEL: " + err.Error())
	}
	return env
})

// metadataOnly reports whether an expression looks only at the metadata of objects. It returns
// false for one that it does not understand.
func metadataOnly(expression string) bool {
	parsed, issues := parser().Parse(expression)
	return issues.Err() == nil && onlyMetadata(parsed.NativeRep().Expr())
}

func onlyMetadata(e ast.Expr) bool {
	switch e.Kind() {
	case ast.LiteralKind, ast.UnspecifiedExprKind:
		return true
	case ast.IdentKind:
		return !namesObject(e)
	case ast.SelectKind:
		return selectsMetadata(e) || onlyMetadata(e.AsSelect().Operand())
	case ast.CallKind:
		c := e.AsCall()
		return selectsMetadata(e) || comparesWithNull(c) ||
			allOnlyMetadata(c.Args()) && (!c.IsMemberFunction() || onlyMetadata(c.Target()))
	case ast.ListKind:
		return allOnlyMetadata(e.AsList().Elements())
	case ast.ComprehensionKind:
		c := e.AsComprehension()
		return allOnlyMetadata([]ast.Expr{c.IterRange(), c.AccuInit(), c.LoopCondition(), c.LoopStep(), c.Result()})
	}
	return false
}

func allOnlyMetadata(list []ast.Expr) bool {
	for _, e := range list {
		if !onlyMetadata(e) {
			return false
		}
	}
	return true
}

func namesObject(e ast.Expr) bool {
	if e.Kind() != ast.IdentKind {
		return false
	}
	name := strings.TrimPrefix(e.AsIdent(), ".") // a leading dot means CEL's outermost scope
	return name == admissioncel.ObjectVarName || name == admissioncel.OldObjectVarName
}

// selectsMetadata reports whether an expression is a field of metadata, or names the kind:
// object.kind, has(object.metadata), object.metadata.labels, object.metadata.?labels.
func selectsMetadata(e ast.Expr) bool {
	of, field := selected(e)
	if of == nil {
		return false
	}
	if namesObject(of) {
		return field == "apiVersion" || field == "kind" ||
			field == "metadata" && e.Kind() == ast.SelectKind && e.AsSelect().IsTestOnly()
	}
	object, metadata := selected(of)
	return object != nil && namesObject(object) && metadata == "metadata" && field != ManagedFields
}

// selected returns the operand and the field of a.b, has(a.b) and a.?b. It returns nil for any
// other expression.
func selected(e ast.Expr) (of ast.Expr, field string) {
	switch {
	case e.Kind() == ast.SelectKind:
		return e.AsSelect().Operand(), e.AsSelect().FieldName()
	case e.Kind() == ast.CallKind && e.AsCall().FunctionName() == operators.OptSelect && len(e.AsCall().Args()) == 2:
		field, _ = e.AsCall().Args()[1].AsLiteral().Value().(string)
		return e.AsCall().Args()[0], field
	}
	return nil, ""
}

// comparesWithNull reports whether a call is like oldObject == null.
func comparesWithNull(c ast.CallExpr) bool {
	if c.FunctionName() != operators.Equals && c.FunctionName() != operators.NotEquals || len(c.Args()) != 2 {
		return false
	}
	a, b := c.Args()[0], c.Args()[1]
	return namesObject(a) && isNull(b) || namesObject(b) && isNull(a)
}

func isNull(e ast.Expr) bool { return e.Kind() == ast.LiteralKind && e.AsLiteral() == types.NullValue }

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
