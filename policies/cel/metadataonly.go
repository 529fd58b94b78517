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

// Most conditions are about labels, annotations and names: for those an object's metadata is
// decoded, and the rest of it never is.

// ManagedFields is what is left out of metadata: it is long, and hardly ever asked about.
const ManagedFields = "managedFields"

var parser = sync.OnceValue(func() *cel.Env {
	env, err := cel.NewEnv(cel.OptionalTypes())
	if err != nil {
		panic("cel: parse CEL: " + err.Error())
	}
	return env
})

// metadataOnly tells whether an expression looks at nothing of objects but their metadata. Of one
// that it does not understand it says no.
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
		return selectsMetadata(e) || comparesWithNull(e.AsCall()) || touchTheirs(e.AsCall().Args()) && (!e.AsCall().IsMemberFunction() || onlyMetadata(e.AsCall().Target()))
	case ast.ListKind:
		return touchTheirs(e.AsList().Elements())
	case ast.ComprehensionKind:
		c := e.AsComprehension()
		return touchTheirs([]ast.Expr{c.IterRange(), c.AccuInit(), c.LoopCondition(), c.LoopStep(), c.Result()})
	}
	return false
}

func touchTheirs(list []ast.Expr) bool {
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
	name := strings.TrimPrefix(e.AsIdent(), ".") // of CEL's outermost scope
	return name == admissioncel.ObjectVarName || name == admissioncel.OldObjectVarName
}

// selectsMetadata: object.kind, has(object.metadata), object.metadata.labels,
// object.metadata.?labels.
func selectsMetadata(e ast.Expr) bool {
	of, field := selected(e)
	if of == nil {
		return false
	}
	if namesObject(of) {
		return field == "apiVersion" || field == "kind" || field == "metadata" && e.Kind() == ast.SelectKind && e.AsSelect().IsTestOnly()
	}
	object, metadata := selected(of)
	return object != nil && namesObject(object) && metadata == "metadata" && field != ManagedFields
}

// selected is what an expression selects a field of, with the field's name: of a.b, has(a.b) and
// a.?b. It is nil for any other expression.
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

// comparesWithNull: oldObject == null.
func comparesWithNull(c ast.CallExpr) bool {
	if c.FunctionName() != operators.Equals && c.FunctionName() != operators.NotEquals || len(c.Args()) != 2 {
		return false
	}
	a, b := c.Args()[0], c.Args()[1]
	return namesObject(a) && isNull(b) || namesObject(b) && isNull(a)
}

func isNull(e ast.Expr) bool { return e.Kind() == ast.LiteralKind && e.AsLiteral() == types.NullValue }
