package cel

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/interpreter"
	admissioncel "k8s.io/apiserver/pkg/admission/plugin/cel"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// Condition is a compiled CEL expression. It is immutable.
type Condition struct {
	Name, Expression string
	At               string // the field of the policy
	program          cel.Program
	// most is the cost bound of a program without a meter; 0 for one with a meter.
	most         uint64
	metadataOnly bool
	countable    bool
}

// MetadataOnly reports whether the condition looks only at the metadata of objects, without
// managedFields, and at what names their kind.
func (c *Condition) MetadataOnly() bool { return c.metadataOnly }

// compiler is the API server's own for admission policies: its variables, libraries and limit per
// expression.
var compiler = sync.OnceValue(func() admissioncel.Compiler {
	return admissioncel.NewCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
})

// expression is the compiler's input.
type expression struct {
	text   string
	yields *cel.Type
}

// GetExpression implements cel.ExpressionAccessor.
func (e expression) GetExpression() string { return e.text }

// ReturnTypes implements cel.ExpressionAccessor.
func (e expression) ReturnTypes() []*cel.Type { return []*cel.Type{e.yields} }

// declared are no optional variables: what a user may do is not looked up for conditions.
var declared = admissioncel.OptionalVariableDeclarations{}

// compile compiles with the stored environment, which is that of configuration files: everything
// that this version of Kubernetes knows.
func (e expression) compile() (cel.Program, error) {
	r := compiler().CompileCELExpression(e, declared, environment.StoredExpressions)
	if r.Error != nil {
		return nil, errors.New(oneLine(r.Error.Detail))
	}
	return r.Program, nil
}

// Compile compiles an expression for the policy field at. An error is one line.
func Compile(name, text, at string) (Condition, error) {
	program, err := expression{text, cel.BoolType}.compile()
	if err != nil {
		return Condition{}, err
	}
	c := Condition{Name: name, Expression: text, At: at, program: program, metadataOnly: metadataOnly(text)}
	c.countable = c.metadataOnly && countable(text)
	if p := unmetered(text); p != nil {
		c.program, c.most = p, uint64(len(text))
	}
	return c, nil
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// Variables are what conditions are about. An Evaluation asks for what an expression names, when it
// needs it.
type Variables interface {
	// Object and OldObject are those of the request, nil for null. full is false if the condition is
	// MetadataOnly.
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

	shared   Shared
	outcomes []*outcome // of the shared expressions, once evaluated
}

// Shared are the expressions that several conditions have, each with its number. An Evaluation
// evaluates each of them once.
type Shared map[string]int

// Evaluate returns an Evaluation for one goroutine.
func Evaluate(variables Variables, shared Shared) Evaluation {
	return Evaluation{variables: variables, shared: shared}
}

// outcome is the result of an expression.
type outcome struct {
	holds bool
	err   error
	cost  uint64
}

// All reports whether all conditions are true. One that is false decides, even if others fail.
func (e *Evaluation) All(conditions []Condition) (bool, error) {
	var failed error
	budget := uint64(celconfig.RuntimeCELCostBudgetMatchConditions)
	for i := range conditions {
		c := &conditions[i]
		o := e.ask(c)
		if o.err != nil {
			failed = errors.Join(failed, fmt.Errorf("condition %q: %w", c.Name, o.err))
		} else if !o.holds {
			return false, nil
		}
		if o.cost > budget {
			return false, fmt.Errorf("condition %q: %w: the conditions together cost too much", c.Name, ErrCost)
		}
		budget -= o.cost
	}
	return failed == nil, failed
}

// ask evaluates a condition, a shared one only once.
func (e *Evaluation) ask(c *Condition) outcome {
	at, shared := e.shared[c.Expression]
	if !shared {
		return e.run(c)
	}
	if e.outcomes == nil {
		e.outcomes = make([]*outcome, len(e.shared))
	}
	if e.outcomes[at] == nil {
		o := e.run(c)
		e.outcomes[at] = &o
	}
	return *e.outcomes[at]
}

func (e *Evaluation) run(c *Condition) outcome {
	e.full = !c.metadataOnly
	// Eval needs no context: the program's cost limit ends an expression that would run for long.
	val, details, err := c.program.Eval(e)
	o := outcome{holds: err == nil && val == types.True, err: e.failureOf(err), cost: c.most}
	if details != nil && details.ActualCost() != nil {
		o.cost = *details.ActualCost()
	}
	return o
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

// SharedIn returns the expressions that more than one condition has.
func SharedIn(conditions []Condition) Shared {
	seen, shared := map[string]bool{}, Shared{}
	for i := range conditions {
		text := conditions[i].Expression
		if _, already := shared[text]; seen[text] && !already {
			shared[text] = len(shared)
		}
		seen[text] = true
	}
	return shared
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
