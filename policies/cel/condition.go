package cel

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/interpreter"
	"k8s.io/apimachinery/pkg/util/version"
	admissioncel "k8s.io/apiserver/pkg/admission/plugin/cel"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// Expression is a compiled CEL expression. It is immutable.
type Expression struct {
	Text         string
	yields       *cel.Type
	program      cel.Program
	metadataOnly bool
}

// Condition is an Expression that is true or false.
type Condition struct {
	Name string
	At   string // the field of the policy
	Expression
}

// MetadataOnly reports whether the expression looks only at the metadata of objects, without
// managedFields, and at what names their kind.
func (e *Expression) MetadataOnly() bool { return e.metadataOnly }

// compiler is the API server's own for admission policies: its variables, libraries and limit per
// expression.
var compiler = sync.OnceValue(func() admissioncel.Compiler {
	return admissioncel.NewCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
})

// GetExpression implements cel.ExpressionAccessor.
func (e *Expression) GetExpression() string { return e.Text }

// ReturnTypes implements cel.ExpressionAccessor.
func (e *Expression) ReturnTypes() []*cel.Type { return []*cel.Type{e.yields} }

// with returns what a compiler makes of the expression. There are no optional variables: what a user
// may do is not looked up for conditions.
func (e *Expression) with(c admissioncel.Compiler, as environment.Type) (cel.Program, error) {
	r := c.CompileCELExpression(e, admissioncel.OptionalVariableDeclarations{}, as)
	if r.Error != nil {
		return nil, errors.New(oneLine(r.Error.Detail))
	}
	return r.Program, nil
}

// compile uses the stored environment, which is that of configuration files: everything that this
// version of Kubernetes knows.
func compile(text string, yields *cel.Type) (e Expression, err error) {
	e = Expression{Text: text, yields: yields, metadataOnly: metadataOnly(text)}
	e.program, err = e.with(compiler(), environment.StoredExpressions)
	return e, err
}

// Compile compiles an expression for the policy field at. An error is one line.
func Compile(name, text, at string) (Condition, error) {
	e, err := compile(text, cel.BoolType)
	return Condition{Name: name, At: at, Expression: e}, err
}

// CompileMessage compiles an expression that yields a string. An error is one line.
func CompileMessage(text string) (*Expression, error) {
	e, err := compile(text, cel.StringType)
	if err != nil {
		return nil, err
	}
	return &e, nil
}

// KnownIn returns why an API server of a version would not accept the expression in a new admission
// policy; nil if it would.
func (e *Expression) KnownIn(v *version.Version) error {
	_, err := e.with(admissioncel.NewCompiler(environment.MustBaseEnvSet(v)), environment.NewExpressions)
	return err
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// Variables are what conditions are about. An Evaluation asks for what an expression names, when it
// needs it.
type Variables interface {
	// Object and OldObject are those of the request, nil for null. full is false if the expression
	// is MetadataOnly.
	Object(full bool) (map[string]any, error)
	OldObject(full bool) (map[string]any, error)
	// NamespaceObject is nil for what is in no namespace.
	NamespaceObject() map[string]any
	// Request is called once.
	Request() map[string]any
}

// Evaluation evaluates conditions with the same variables.
type Evaluation struct {
	// Quotes keeps errors in CEL's own words, which quote the object. It is for the author of the
	// object; all others get only the class of an error.
	Quotes bool

	variables Variables
	request   map[string]any
	full      bool // the current condition needs whole objects
}

// Evaluate returns an Evaluation for one goroutine.
func Evaluate(variables Variables) Evaluation { return Evaluation{variables: variables} }

// All reports whether all conditions are true. One that is false decides, even if others fail.
func (e *Evaluation) All(conditions []Condition) (bool, error) {
	var failed error
	budget := uint64(celconfig.RuntimeCELCostBudgetMatchConditions)
	for i := range conditions {
		c := &conditions[i]
		holds, cost, err := e.run(c)
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("condition %q: %w", c.Name, err))
		} else if !holds {
			return false, nil
		}
		if cost > budget {
			return false, fmt.Errorf("condition %q: %w: the conditions together cost too much", c.Name, ErrCost)
		}
		budget -= cost
	}
	return failed == nil, failed
}

func (e *Evaluation) run(c *Condition) (holds bool, cost uint64, err error) {
	e.full = !c.metadataOnly
	// Eval needs no context: the program's cost limit ends an expression that would run for long.
	val, details, err := c.program.Eval(e)
	if details != nil && details.ActualCost() != nil {
		cost = *details.ActualCost()
	}
	return err == nil && val == types.True, cost, e.failureOf(err)
}

// Text evaluates a message; empty if it fails.
func (e *Evaluation) Text(m *Expression) string {
	e.full = !m.metadataOnly
	val, _, err := m.program.Eval(e)
	if err != nil {
		return ""
	}
	text, _ := val.Value().(string)
	return text
}

// ErrCost says that a condition costs too much. The cost depends on the object, and so on its
// author.
var ErrCost = errors.New("the object is too large for it")

// The other classes of errors.
var (
	errNoKey     = errors.New("no such key")
	errWrongType = errors.New("a value is of the wrong type for it")
	errOther     = errors.New("it fails, and with what is not shown: it may quote the object")
)

// classes has the class of an error by the beginning of CEL's words for it.
var classes = map[string]error{
	"no such key": errNoKey, "no such attribute": errNoKey, "no such field": errNoKey,
	"no such overload": errWrongType, "type conversion error": errWrongType, "unsupported conversion": errWrongType,
}

// failureOf returns the error of an expression, in one line.
func (e *Evaluation) failureOf(err error) error {
	if err == nil {
		return nil
	}
	words, class := oneLine(err.Error()), errOther
	var cancelled interpreter.EvalCancelledError
	if errors.As(err, &cancelled) && cancelled.Cause == interpreter.CostLimitExceeded {
		class = fmt.Errorf("%w: %s", ErrCost, words) // these quote only the cost
	} else if e.Quotes {
		return errors.New(words)
	}
	for begins, is := range classes {
		if strings.HasPrefix(words, begins) {
			return is
		}
	}
	return class
}

var _ interpreter.Activation = (*Evaluation)(nil)

// ResolveName implements interpreter.Activation.
func (e *Evaluation) ResolveName(name string) (any, bool) {
	switch name {
	case admissioncel.ObjectVarName:
		return value(e.variables.Object(e.full)), true
	case admissioncel.OldObjectVarName:
		return value(e.variables.OldObject(e.full)), true
	case admissioncel.NamespaceVarName:
		return value(e.variables.NamespaceObject(), nil), true
	case admissioncel.RequestVarName:
		if e.request == nil {
			e.request = e.variables.Request()
		}
		return e.request, true
	}
	return nil, false
}

// Parent implements interpreter.Activation.
func (e *Evaluation) Parent() interpreter.Activation { return nil }

// value returns an object for CEL: null, and not an empty object, if there is none.
func value(m map[string]any, err error) any {
	switch {
	case err != nil:
		return types.WrapErr(err)
	case m == nil:
		return nil
	}
	return m
}
