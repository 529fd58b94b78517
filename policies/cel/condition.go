package cel

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
	admissioncel "k8s.io/apiserver/pkg/admission/plugin/cel"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// Condition is a compiled CEL expression. It never changes.
type Condition struct {
	Name, Expression string
	At               string // the field of the policy
	program          cel.Program
	// most is what the program costs at most, of one without a meter; 0 of one with.
	most         uint64
	metadataOnly bool
	countable    bool
}

// MetadataOnly tells that it looks at nothing of objects but their metadata, without managedFields,
// and what names their kind.
func (c *Condition) MetadataOnly() bool { return c.metadataOnly }

// The compiler is the API server's own for admission policies: its variables, libraries and limit
// per expression.
var compiler = sync.OnceValue(func() admissioncel.Compiler {
	return admissioncel.NewCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
})

// expression is what the compiler wants to know of an expression.
type expression struct {
	text   string
	yields *cel.Type
}

// GetExpression implements cel.ExpressionAccessor.
func (e expression) GetExpression() string { return e.text }

// ReturnTypes implements cel.ExpressionAccessor.
func (e expression) ReturnTypes() []*cel.Type { return []*cel.Type{e.yields} }

// declared are variables that the compiler knows besides.
var declared = admissioncel.OptionalVariableDeclarations{HasAuthorizer: true}

// compile compiles with the stored environment, which is that of configuration files: everything
// this version of Kubernetes knows.
func (e expression) compile() (cel.Program, error) {
	r := compiler().CompileCELExpression(e, declared, environment.StoredExpressions)
	if r.Error != nil {
		return nil, errors.New(oneLine(r.Error.Detail))
	}
	return r.Program, nil
}

// Compile compiles an expression for a policy whose field is at. An error is one line.
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

// Variables are what conditions are about. An Evaluation asks for what an expression names, and not
// before.
type Variables interface {
	// Object and OldObject are those of the request, nil for null. Where full is false, a condition
	// that is MetadataOnly asks.
	Object(full bool) (map[string]any, error)
	OldObject(full bool) (map[string]any, error)
	// NamespaceObject is nil for what is in no namespace.
	NamespaceObject() map[string]any
	// Request is asked for once.
	Request() map[string]any
	// Authorizer and ResourceAuthorizer answer what who sends the request may do.
	Authorizer() ref.Val
	ResourceAuthorizer() ref.Val
}

// Evaluation asks conditions about the same variables.
type Evaluation struct {
	// Quotes has errors in CEL's own words, which quote what an object holds. It is for who wrote
	// the object; everybody else is told of which class an error is.
	Quotes bool

	variables Variables
	request   map[string]any
	full      bool // what the condition that is asked needs of objects

	shared   Shared
	outcomes []*outcome // of the shared expressions that were asked
}

// Shared are the expressions that several conditions have, each with its number. An Evaluation asks
// such a one once.
type Shared map[string]int

// Evaluate gives an Evaluation that is asked by one goroutine.
func Evaluate(variables Variables, shared Shared) Evaluation {
	return Evaluation{variables: variables, shared: shared}
}

// outcome is what an expression came to.
type outcome struct {
	holds bool
	err   error
	cost  uint64
}

// All tells whether all conditions are true. One that is false decides, whatever the others would
// say.
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

// ask asks a condition, and one that several policies have only once.
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
	// Eval needs no context: the limit of cost in the program ends what would run for long.
	val, details, err := c.program.Eval(e)
	o := outcome{holds: err == nil && val == types.True, err: e.failureOf(err), cost: c.most}
	if details != nil && details.ActualCost() != nil {
		o.cost = *details.ActualCost()
	}
	return o
}

// ErrCost is a condition that costs too much. How much it costs the object decides, and so does
// whoever wrote that.
var ErrCost = errors.New("the object is too large for it")

// The other classes of errors.
var (
	errNoKey     = errors.New("no such key")
	errWrongType = errors.New("a value is of the wrong type for it")
	errOther     = errors.New("it fails, and with what is not shown: it may quote the object")
)

// classes tells the class of an error by how CEL's words for it begin.
var classes = map[string]error{
	"no such key": errNoKey, "no such attribute": errNoKey, "no such field": errNoKey,
	"no such overload": errWrongType, "type conversion error": errWrongType, "unsupported conversion": errWrongType,
}

// failureOf is the error of an expression, in one line.
func (e *Evaluation) failureOf(err error) error {
	if err == nil {
		return nil
	}
	words, class := oneLine(err.Error()), errOther
	if cancelled := (interpreter.EvalCancelledError{}); errors.As(err, &cancelled) && cancelled.Cause == interpreter.CostLimitExceeded {
		class = fmt.Errorf("%w: %s", ErrCost, words) // which are of the cost alone
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

// SharedIn are the expressions that more than one of the conditions have.
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
	case admissioncel.AuthorizerVarName:
		return e.variables.Authorizer(), true
	case admissioncel.RequestResourceAuthorizerVarName:
		return e.variables.ResourceAuthorizer(), true
	}
	return nil, false
}

// Parent implements interpreter.Activation.
func (e *Evaluation) Parent() interpreter.Activation { return nil }

// value is an object for CEL: null, and not an empty one, where there is none.
func value(m map[string]any, err error) any {
	switch {
	case err != nil:
		return types.WrapErr(err)
	case m == nil:
		return nil
	}
	return m
}
