package policies

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/weir-dev/weir/policies/v1alpha1"
)

// compiled is a policy that is ready to judge, or one with problems. It never changes, and sets share it.
type compiled struct {
	key      PolicyKey
	source   Source
	problems []Problem
	// resources is empty for a policy that is too broken to say what it is about; it takes part in nothing.
	matcher
	failurePolicy v1alpha1.FailurePolicy

	// One of these, by kind.
	deletion *deletion
	owners   *v1alpha1.OwnerReferencePolicySpec
	drain    *drain
}

// deletion is what a DeletionPolicy asks for.
type deletion struct {
	priority    int32
	propagation *v1alpha1.Propagation
	protection  *v1alpha1.Protection
	actions     []v1alpha1.ValidationAction
}

// drain is what a DrainPolicy asks for.
type drain struct {
	waves []wave
}

type wave struct {
	v1alpha1.Wave
	objects labels.Selector
	timeout time.Duration
}

func (c *compiled) ready() bool {
	return !slices.ContainsFunc(c.problems, func(p Problem) bool { return !p.Warning })
}

// compile never fails: what is wrong is in the problems.
func compile(s Source) *compiled {
	c := &compiled{key: s.key(), source: s}
	kind, ok := schemas()[c.key.Kind]
	if !ok {
		c.problem(field.Invalid(field.NewPath("kind"), c.key.Kind, "must be one of "+strings.Join(kinds, ", ")))
		return c
	}
	obj, errs := kind.admit(s.Object)
	for _, err := range errs {
		c.problem(err)
	}
	switch c.key.Kind {
	case "DeletionPolicy":
		var p v1alpha1.DeletionPolicy
		if c.into(obj, &p) {
			c.compileDeletion(&p.Spec)
		}
	case "OwnerReferencePolicy":
		var p v1alpha1.OwnerReferencePolicy
		if c.into(obj, &p) {
			c.owners = &p.Spec
			c.failurePolicy = cmp.Or(p.Spec.FailurePolicy, v1alpha1.Ignore)
			c.compileMatch(&p.Spec.Match)
		}
	case "DrainPolicy":
		var p v1alpha1.DrainPolicy
		if c.into(obj, &p) {
			c.compileDrain(&p.Spec)
		}
	}
	if !c.ready() {
		c.broken = "the policy is broken: " + c.firstError()
	}
	return c
}

// same tells whether compiling s would give c again.
func (c *compiled) same(s Source) bool {
	return c.source.File == s.File && c.source.start == s.start &&
		reflect.DeepEqual(c.source.Object["spec"], s.Object["spec"]) && c.source.Object["apiVersion"] == s.Object["apiVersion"]
}

// into makes a typed policy of an object. Where the schema was broken that can fail; what fits is then used to know
// what the policy is about.
func (c *compiled) into(obj map[string]any, to any) bool {
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj, to)
	if err != nil && c.ready() {
		c.problem(field.Invalid(field.NewPath("spec"), field.OmitValueType{}, oneLine(err.Error())))
	}
	return err == nil
}

func (c *compiled) compileMatch(m *v1alpha1.Match) {
	at := field.NewPath("spec", "match")
	var errs field.ErrorList
	c.resources = m.Resources
	c.namespaces = compileSelector(m.NamespaceSelector, at.Child("namespaceSelector"), &errs)
	c.objects = compileSelector(m.ObjectSelector, at.Child("objectSelector"), &errs)
	var bad field.ErrorList
	c.conditions, bad = compileConditions(m.Conditions, at.Child("conditions"))
	for _, err := range append(errs, bad...) {
		c.problem(err)
	}
}

func (c *compiled) compileDeletion(p *v1alpha1.DeletionPolicySpec) {
	d := &deletion{priority: p.Priority, propagation: p.Propagation, protection: p.Protection, actions: p.ValidationActions}
	if len(d.actions) == 0 {
		d.actions = []v1alpha1.ValidationAction{v1alpha1.Deny}
	}
	c.failurePolicy = cmp.Or(p.FailurePolicy, v1alpha1.Ignore)
	c.deletion = d
	c.compileMatch(&p.Match)
	if p.Propagation == nil {
		return
	}
	for _, gr := range unshapeable {
		if slices.Contains(spelled(c.resources), gr) {
			c.warn("spec.propagation", fmt.Sprintf("it does not apply to %s: the API server does not let their deletion take another course", gr))
		}
	}
	for i, cond := range p.Match.Conditions {
		if strings.Contains(cond.Expression, "request.") {
			c.warn(fmt.Sprintf("spec.match.conditions[%d].expression", i),
				"propagation is decided by what an object is, before anyone asks to delete it: request then tells who wrote the object")
		}
	}
}

func (c *compiled) compileDrain(p *v1alpha1.DrainPolicySpec) {
	c.failurePolicy = v1alpha1.Ignore
	var errs field.ErrorList
	c.namespaces = compileSelector(p.NamespaceSelector, field.NewPath("spec", "namespaceSelector"), &errs)
	c.drain = &drain{}
	for i, w := range p.Waves {
		at := field.NewPath("spec", "waves").Index(i)
		cw := wave{Wave: w, objects: compileSelector(w.ObjectSelector, at.Child("objectSelector"), &errs)}
		if w.Timeout != nil {
			cw.timeout = w.Timeout.Duration
		}
		c.drain.waves = append(c.drain.waves, cw)
		c.resources = append(c.resources, w.Resources...)
	}
	for _, err := range errs {
		c.problem(err)
	}
}

func (d *deletion) allows(p v1alpha1.PropagationPolicy) bool {
	return d.propagation == nil || len(d.propagation.Allowed) == 0 || slices.Contains(d.propagation.Allowed, p)
}

func (c *compiled) problem(err *field.Error) {
	c.problems = append(c.problems, Problem{
		Policy: c.key, File: c.source.File, Line: c.source.line(err.Field), Field: err.Field,
		Message: oneLine(strings.TrimPrefix(err.ErrorBody(), "Invalid value: ")),
	})
}

func (c *compiled) warn(at, message string) {
	c.problems = append(c.problems, Problem{
		Policy: c.key, File: c.source.File, Line: c.source.line(at), Field: at, Message: message, Warning: true,
	})
}

func (c *compiled) firstError() string {
	for _, p := range c.problems {
		if !p.Warning {
			return p.Field + ": " + p.Message
		}
	}
	return ""
}

// orphanedByDefault are the kinds whose dependents the API server orphans when a delete asks for nothing.
var orphanedByDefault = []schema.GroupResource{{Resource: "replicationcontrollers"}, {Group: "batch", Resource: "jobs"}}

func compare(a, b string) int { return strings.Compare(a, b) }
