package cel

import (
	"slices"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
	"k8s.io/apimachinery/pkg/util/version"
	admissioncel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// A condition about object in a DeletionPolicy compiles, and never holds: object is null at a
// DELETE. CEL finds that out request by request, and the policy would be Ready and protect nothing.
// So CEL evaluates it once with all that is not known beforehand left open.

// NeverTrue tells whether an expression cannot be true because object is null.
func NeverTrue(expression string) bool {
	return neverTrue(expression, map[string]any{admissioncel.ObjectVarName: nil}, open(admissioncel.RequestVarName))
}

// NeverOfADelete tells whether an expression cannot be true because the request is the DELETE of an
// object: it would have another operation, or a subresource.
func NeverOfADelete(expression string) bool {
	of := func(field string) *cel.AttributePatternType {
		return open(admissioncel.RequestVarName).QualString(field)
	}
	return neverTrue(expression, map[string]any{admissioncel.RequestVarName: map[string]any{"operation": "DELETE"}},
		open(admissioncel.ObjectVarName), of("uid"), of("kind"), of("resource"), of("requestKind"), of("requestResource"),
		of("name"), of("namespace"), of("userInfo"), of("options"), of("dryRun"), of("object"), of("oldObject"))
}

// open is a variable of which nothing is known.
func open(variable string) *cel.AttributePatternType { return cel.AttributePattern(variable) }

// partly is the API server's CEL with variables that may hold anything.
var partly = sync.OnceValue(func() *cel.Env {
	var variables []cel.EnvOption
	for _, name := range []string{admissioncel.ObjectVarName, admissioncel.OldObjectVarName, admissioncel.RequestVarName,
		admissioncel.NamespaceVarName, admissioncel.AuthorizerVarName, admissioncel.RequestResourceAuthorizerVarName} {
		variables = append(variables, cel.Variable(name, cel.DynType))
	}
	set, err := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).Extend(
		environment.VersionedOptions{IntroducedVersion: version.MajorMinor(1, 0), EnvOptions: variables})
	if err != nil {
		panic("cel: CEL with open variables: " + err.Error())
	}
	return set.StoredExpressionsEnv()
})

// neverTrue tells whether an expression cannot be true where these variables are known, and might
// where they are not.
func neverTrue(expression string, known map[string]any, unknown ...*cel.AttributePatternType) bool {
	checked, issues := partly().Compile(expression)
	if issues.Err() != nil {
		return false
	}
	program, err := partly().Program(checked, cel.EvalOptions(cel.OptPartialEval, cel.OptExhaustiveEval, cel.OptTrackState))
	if err != nil {
		return false
	}
	unknown = append(unknown, open(admissioncel.OldObjectVarName), open(admissioncel.NamespaceVarName),
		open(admissioncel.AuthorizerVarName), open(admissioncel.RequestResourceAuthorizerVarName))
	never := func(known map[string]any, unknown ...*cel.AttributePatternType) bool {
		vars, err := cel.PartialVars(known, unknown...)
		if err != nil {
			return false
		}
		_, details, _ := program.Eval(vars) // an error is in the details
		return details != nil && partial{details.State()}.never(checked.NativeRep().Expr())
	}
	all := slices.Clone(unknown)
	for variable := range known {
		all = append(all, open(variable))
	}
	return never(known, unknown...) && !never(map[string]any{}, all...)
}

// partial is what the parts of an expression came to.
type partial struct{ interpreter.EvalState }

func (p partial) value(e ast.Expr) ref.Val {
	v, _ := p.Value(e.ID())
	return v
}

// never tells whether it cannot be true. CEL lets what is not known outweigh what is false or fails.
func (p partial) never(e ast.Expr) bool {
	if e.Kind() == ast.CallKind {
		switch args := e.AsCall().Args(); e.AsCall().FunctionName() {
		case operators.LogicalAnd:
			return p.never(args[0]) || p.never(args[1])
		case operators.LogicalOr:
			return p.never(args[0]) && p.never(args[1])
		}
	}
	return p.value(e) == types.False || p.fails(e)
}

// fails tells whether it is an error, as a call is with an argument that is one.
func (p partial) fails(e ast.Expr) bool {
	if types.IsError(p.value(e)) {
		return true
	}
	if e.Kind() != ast.CallKind {
		return false
	}
	switch e.AsCall().FunctionName() {
	case operators.LogicalAnd, operators.LogicalOr, operators.Conditional:
		return false
	}
	return slices.ContainsFunc(e.AsCall().Args(), p.fails)
}

// Mentions reports whether an expression names a variable.
func Mentions(expression, variable string) bool {
	return finds(expression, func(e ast.Expr) bool { return isVariable(e, variable) })
}

// Calls reports whether an expression calls one of some functions.
func Calls(expression string, functions ...string) bool {
	return finds(expression, func(e ast.Expr) bool {
		return e.Kind() == ast.CallKind && slices.Contains(functions, e.AsCall().FunctionName())
	})
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
