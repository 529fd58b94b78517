package policies

import (
	"maps"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	admissioncel "k8s.io/apiserver/pkg/admission/plugin/cel"

	"github.com/weir-dev/weir/policies/cel"
	"github.com/weir-dev/weir/policies/v1beta1"
)

func (c *compiled) compileConditions(in []v1beta1.MatchCondition, at *field.Path) {
	for i, one := range in {
		at := at.Index(i).Child("expression")
		compiled, err := cel.Compile(one.Name, one.Expression, at.String())
		if err != nil {
			c.problem(field.Invalid(at, field.OmitValueType{}, err.Error()))
			continue
		}
		c.conditions = append(c.conditions, compiled)
	}
}

// checkConditions finds conditions of a DeletionPolicy that cannot be intended.
func (c *compiled) checkConditions() {
	early := "" // what is decided before anybody asks to delete
	switch p := c.deletion.propagation; {
	case p != nil && p.Default != "":
		early = "propagation.default"
	case p != nil && len(p.Dependents) > 0:
		early = "propagation.dependents"
	case c.readsAnnotation():
		early = "propagation.annotation"
	case c.deletion.brake != nil:
		early = "a brake"
	case c.deletion.archive != nil:
		early = "an archive"
	}
	for i := range c.conditions {
		at, expression := c.conditions[i].At, c.conditions[i].Text
		if cel.LooksInto(expression, admissioncel.ObjectVarName) {
			c.warn(at, "conditions are evaluated as for a DELETE, where object is null: "+
				"an expression that reads its fields fails. Use oldObject")
		}
		if early != "" && cel.Mentions(expression, admissioncel.RequestVarName) {
			c.mistake(at, "a policy with "+early+" cannot use request in conditions: what it does is "+
				"prepared on objects before anyone asks to delete them. "+
				"Put protection and propagation.allowed into another policy")
		}
	}
}

// tellsBeyondMetadata reports whether a condition, or the message, needs more of an object than its
// metadata.
func (c *compiled) tellsBeyondMetadata() bool {
	return c.looksBeyondMetadata() || c.says != nil && !c.says.MetadataOnly()
}

// looksBeyondMetadata reports the same for conditions alone.
func (c *compiled) looksBeyondMetadata() bool {
	return slices.ContainsFunc(c.conditions, func(cond cel.Condition) bool { return !cond.MetadataOnly() })
}

// evaluation is a question that conditions are evaluated for.
type evaluation struct {
	q *Question
	cel.Evaluation
}

func evaluate(q *Question) evaluation {
	e := evaluation{q: q, Evaluation: cel.Evaluate(variables{q})}
	e.Quotes = q.Quotes
	return e
}

// variables exposes a question to conditions.
type variables struct{ q *Question }

var _ cel.Variables = variables{}

// Object implements cel.Variables.
func (v variables) Object(full bool) (map[string]any, error) {
	if !full {
		return v.typed(v.q.Object), nil
	}
	return v.q.object.full(v.q.Object)
}

// OldObject implements cel.Variables.
func (v variables) OldObject(full bool) (map[string]any, error) {
	if !full {
		return v.typed(v.q.OldObject), nil
	}
	return v.q.oldObject.full(v.q.OldObject)
}

// typed returns an object with its own kind. Objects that are read by their metadata alone have
// another.
func (v variables) typed(obj map[string]any) map[string]any {
	if object(obj).str("kind") != "PartialObjectMetadata" || v.q.Kind.Empty() {
		return obj
	}
	obj = maps.Clone(obj)
	obj["apiVersion"], obj["kind"] = v.q.Kind.ToAPIVersionAndKind()
	return obj
}

// NamespaceObject implements cel.Variables.
func (v variables) NamespaceObject() map[string]any { return v.q.NamespaceObject }

// Request implements cel.Variables. It is what the API server makes of an AdmissionRequest.
func (v variables) Request() map[string]any {
	q := v.q
	r := admissionv1.AdmissionRequest{
		Kind: metav1.GroupVersionKind(q.Kind), Resource: metav1.GroupVersionResource(q.Resource),
		SubResource: q.Subresource, RequestSubResource: q.RequestSubresource, Name: q.Name, Namespace: q.Namespace,
		Operation: admissionv1.Operation(q.Operation), DryRun: &q.DryRun,
		UserInfo: authenticationv1.UserInfo{Username: q.User.Name, UID: q.User.UID, Groups: q.User.Groups,
			Extra: map[string]authenticationv1.ExtraValue{}},
	}
	for k, values := range q.User.Extra {
		r.UserInfo.Extra[k] = values
	}
	r.RequestKind, r.RequestResource = &r.Kind, &r.Resource
	if !q.RequestKind.Empty() {
		r.RequestKind = new(metav1.GroupVersionKind(q.RequestKind))
	}
	if q.RequestResource.Empty() {
		r.RequestSubResource = q.Subresource
	} else {
		r.RequestResource = new(metav1.GroupVersionResource(q.RequestResource))
	}
	out, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&r)
	utilruntime.Must(err)
	if q.Options != nil { // otherwise null, not an empty map
		out["options"] = q.Options
	}
	return out
}
