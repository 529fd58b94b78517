package policies

import (
	"errors"
	"fmt"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/interpreter"
	"k8s.io/apimachinery/pkg/util/validation/field"
	admissioncel "k8s.io/apiserver/pkg/admission/plugin/cel"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/weir-dev/weir/policies/v1alpha1"
)

// condition is a compiled CEL expression.
type condition struct {
	name       string
	expression string
	at         string // the field
	program    cel.Program
	// most is what the program costs at most, of one without a meter; 0 of one with.
	most uint64
	// whole tells that the program may look at more of objects than their essence.
	whole bool
}

// The compiler is the API server's own for admission policies: its variables, libraries and limit per expression.
var compiler = sync.OnceValue(func() admissioncel.Compiler {
	return admissioncel.NewCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
})

// expression is what the compiler wants to know of an expression.
type expression string

// GetExpression implements cel.ExpressionAccessor.
func (e expression) GetExpression() string { return string(e) }

// ReturnTypes implements cel.ExpressionAccessor.
func (e expression) ReturnTypes() []*cel.Type { return []*cel.Type{cel.BoolType} }

func compileConditions(in []v1alpha1.Condition, at *field.Path) ([]condition, field.ErrorList) {
	var out []condition
	var errs field.ErrorList
	for i, c := range in {
		// The stored environment is that of configuration files: everything this version of Kubernetes knows.
		r := compiler().CompileCELExpression(expression(c.Expression), admissioncel.OptionalVariableDeclarations{}, environment.StoredExpressions)
		if r.Error != nil {
			errs = append(errs, field.Invalid(at.Index(i).Child("expression"), field.OmitValueType{}, oneLine(r.Error.Detail)))
			continue
		}
		compiled := condition{name: c.Name, expression: c.Expression, at: at.Index(i).Child("expression").String(), program: r.Program, whole: !metadataOnly(c.Expression)}
		if p := unmetered(c.Expression); p != nil {
			compiled.program, compiled.most = p, uint64(len(c.Expression))
		}
		out = append(out, compiled)
	}
	return out, errs
}

// evaluation is a question as CEL sees it. Its variables are made once, when the first expression asks.
type evaluation struct {
	q       *Question
	request map[string]any
	whole   bool // of the condition that is asked

	// shared are the expressions that several policies have, and places in outcomes, which are of those that were asked.
	shared   map[string]int
	outcomes []*outcome
}

// outcome is what an expression came to.
type outcome struct {
	holds bool
	err   error
	cost  uint64
}

// all tells whether all conditions are true. One that is false decides, whatever the others would say.
func (e *evaluation) all(conditions []condition) (bool, error) {
	var failed error
	budget := uint64(celconfig.RuntimeCELCostBudgetMatchConditions)
	for i := range conditions {
		c := &conditions[i]
		o := e.ask(c)
		if o.err != nil {
			failed = errors.Join(failed, fmt.Errorf("condition %q: %w", c.name, o.err))
		} else if !o.holds {
			return false, nil
		}
		if o.cost > budget {
			return false, fmt.Errorf("condition %q: %w: the conditions together cost too much", c.name, errCost)
		}
		budget -= o.cost
	}
	return failed == nil, failed
}

// ask asks a condition, and one that several policies have only once.
func (e *evaluation) ask(c *condition) outcome {
	at, shared := e.shared[c.expression]
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

func (e *evaluation) run(c *condition) outcome {
	e.whole = c.whole
	// Eval needs no context: the limit of cost in the program ends what would run for long.
	val, details, err := c.program.Eval(e)
	o := outcome{holds: err == nil && val == types.True, err: failureOf(err), cost: c.most}
	if details != nil && details.ActualCost() != nil {
		o.cost = *details.ActualCost()
	}
	return o
}

// errCost is a condition that costs too much. How much it costs the object decides, and so does whoever wrote that.
var errCost = errors.New("the object is too large for it")

// failureOf is the error of an expression, in one line.
func failureOf(err error) error {
	if err == nil {
		return nil
	}
	if cancelled := (interpreter.EvalCancelledError{}); errors.As(err, &cancelled) && cancelled.Cause == interpreter.CostLimitExceeded {
		return fmt.Errorf("%w: %s", errCost, oneLine(err.Error()))
	}
	return errors.New(oneLine(err.Error()))
}

// sharedBy are the expressions that more than one of the policies have, numbered.
func sharedBy(list []*compiled) map[string]int {
	seen, shared := map[string]bool{}, map[string]int{}
	for _, c := range list {
		for _, cond := range c.conditions {
			if _, already := shared[cond.expression]; seen[cond.expression] && !already {
				shared[cond.expression] = len(shared)
			}
			seen[cond.expression] = true
		}
	}
	return shared
}

var _ interpreter.Activation = (*evaluation)(nil)

// ResolveName implements interpreter.Activation.
func (e *evaluation) ResolveName(name string) (any, bool) {
	switch name {
	case admissioncel.ObjectVarName:
		return e.object(e.q.Object, e.q.object), true
	case admissioncel.OldObjectVarName:
		return e.object(e.q.OldObject, e.q.oldObject), true
	case admissioncel.NamespaceVarName:
		return orNull(e.q.NamespaceObject), true
	case admissioncel.RequestVarName:
		if e.request == nil {
			e.request = e.q.asRequest()
		}
		return e.request, true
	}
	return nil, false
}

// Parent implements interpreter.Activation.
func (e *evaluation) Parent() interpreter.Activation { return nil }

func (e *evaluation) object(essence map[string]any, t *text) any {
	if !e.whole {
		return orNull(essence)
	}
	whole, err := t.whole(essence)
	if err != nil {
		return types.WrapErr(err)
	}
	return orNull(whole)
}

func orNull(m map[string]any) any {
	if m == nil {
		return nil
	}
	return m
}
