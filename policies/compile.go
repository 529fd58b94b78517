package policies

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	admissioncel "k8s.io/apiserver/pkg/admission/plugin/cel"

	"k8s.io/utils/ptr"

	"github.com/weir-dev/weir/controller/drain"
	"github.com/weir-dev/weir/policies/cel"
	"github.com/weir-dev/weir/policies/v1beta1"
)

// compiled is a policy that is ready to judge, or one with problems. It never changes, and sets
// share it.
type compiled struct {
	key      PolicyKey
	source   Source
	problems []Problem
	mentions []Name
	// resources is empty if the policy is too broken to say what it is about; it then takes part in
	// nothing.
	matcher
	failurePolicy v1beta1.FailurePolicy
	priority      int32 // the policy with the highest is chosen
	actions       []v1beta1.ValidationAction
	part          Part
	asksHow       bool   // a condition looks at the request
	message       string // the policy's own
	says          *cel.Expression

	// One of these, by kind.
	deletion *deletion
	owners   *v1beta1.OwnerReferencePolicySpec
	waves    []wave // of a DrainPolicy; nil for others
}

// deletion is what a DeletionPolicy asks for.
type deletion struct {
	propagation *v1beta1.Propagation
	protection  *v1beta1.Protection
	brake       *int32 // how many objects may go; nil for any number
	archive     *v1beta1.Archive
	declares    bool // the propagation is declared by the object
}

// wave is a wave of a DrainPolicy, and the objects in it.
type wave struct {
	drain.Wave
	resources []v1beta1.ResourceRule
	objects   labels.Selector // nil selects all
}

func (c *compiled) ready() bool {
	return !slices.ContainsFunc(c.problems, func(p Problem) bool { return !p.Warning })
}

// compile never fails: errors are in the problems.
func compile(s Source) *compiled {
	c := &compiled{key: s.key(), source: s, part: PartIgnore}
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
		var p v1beta1.DeletionPolicy
		if c.into(obj, &p) {
			c.compileDeletion(&p.Spec)
		}
	case "OwnerReferencePolicy":
		var p v1beta1.OwnerReferencePolicy
		if c.into(obj, &p) {
			c.owners = &p.Spec
			c.compileJudging(p.Spec.FailurePolicy, p.Spec.ValidationActions, &p.Spec.Match, p.Spec.PolicyMessage)
			if p.Spec.BlockOwnerDeletion == v1beta1.BlockClear {
				c.warn("spec.blockOwnerDeletion", "an owner that is deleted in Foreground does not wait for dependents whose "+
					"blockOwnerDeletion is cleared")
			}
			if c.onTrial() && c.refuses() {
				c.warn("spec.validationActions", "they do not apply to spec.rules, which have their own actions: a rule with "+
					"Deny refuses")
			}
		}
	case "DrainPolicy":
		var p v1beta1.DrainPolicy
		if c.into(obj, &p) {
			c.compileDrain(&p.Spec)
		}
	}
	if !c.ready() {
		c.broken = "the policy is broken: " + c.firstError()
	}
	return c
}

// same reports whether compiling s would give c again.
func (c *compiled) same(s Source) bool {
	return c.source.File == s.File && c.source.start == s.start &&
		reflect.DeepEqual(c.source.Object["spec"], s.Object["spec"]) &&
		c.source.Object["apiVersion"] == s.Object["apiVersion"]
}

// into converts an object to a typed policy. With a broken schema that may fail; what was converted
// then tells what the policy is about.
func (c *compiled) into(obj map[string]any, to any) bool {
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj, to)
	if err != nil && c.ready() {
		c.problem(field.Invalid(field.NewPath("spec"), field.OmitValueType{}, oneLine(err.Error())))
	}
	return err == nil
}

func (c *compiled) compileMatch(m *v1beta1.Match) {
	at := field.NewPath("spec", "match")
	c.resources, c.excluded, c.names, c.scope = usable(m.Resources), m.ExcludeResources, m.ResourceNames,
		usableScope(m.Scope)
	c.exempt = excluded{users: m.ExcludeUsers, groups: m.ExcludeGroups, accounts: m.ExcludeServiceAccounts,
		controllers: m.KubernetesControllers == v1beta1.ExcludeControllers}
	c.only = excluded{users: m.Users, groups: m.Groups, accounts: m.ServiceAccounts}
	c.mention(m.Resources, at.Child("resources"))
	c.namespaces = c.compileSelector(m.NamespaceSelector, at.Child("namespaceSelector"))
	c.objects = c.compileSelector(m.ObjectSelector, at.Child("objectSelector"))
	c.compileConditions(m.MatchConditions, at.Child("matchConditions"))
	c.asksHow = slices.ContainsFunc(c.conditions, func(one cel.Condition) bool {
		return cel.Mentions(one.Text, admissioncel.RequestVarName)
	})
	c.part = c.whichPart()
}

// mention gathers the resources that rules name, for the condition Resolved. A rule without groups is
// for the schema to refuse.
func (c *compiled) mention(rules []v1beta1.ResourceRule, at *field.Path) {
	for i, r := range rules {
		for j, resource := range r.Resources {
			if resource != "*" && len(r.APIGroups) > 0 {
				c.mentions = append(c.mentions, Name{at.Index(i).Child("resources").Index(j).String(), r.APIGroups, resource})
			}
		}
	}
}

func (c *compiled) compileDeletion(p *v1beta1.DeletionPolicySpec) {
	d := &deletion{propagation: p.Propagation, protection: p.Protection, brake: p.Brake.MaxObjects, archive: p.Archive}
	c.deletion, c.priority = d, ptr.Deref(p.Priority, 0)
	c.compileJudging(p.FailurePolicy, p.ValidationActions, &p.Match, p.PolicyMessage)
	if p.Protection != nil && p.Match.KubernetesControllers == v1beta1.JudgeControllers && !c.onTrial() {
		c.warn("spec.match.kubernetesControllers", "Kubernetes' own controllers cannot confirm, so they are refused: "+
			"rollouts, and the removal of finished Jobs, wait for ever")
	}
	c.checkConditions()
	if p.Protection != nil && !c.protectsFrom(v1beta1.ProtectDelete) && !c.about(pods) {
		c.mistake("spec.protection.requests", "only pods are evicted, and match.resources names none: it would refuse "+
			"nothing")
	}
	if d.brake != nil {
		c.warnOfUnheld("spec.brake", append(slices.Clone(notPropagated), definitions))
	}
	if p.Archive != nil {
		c.warnOfUnheld("spec.archive", slices.Concat([]schema.GroupResource{pods, definitions}, machines, permissions))
		c.mention(p.Archive.Exclude, field.NewPath("spec", "archive", "exclude"))
	}
	if p.Propagation == nil {
		return
	}
	dependents := make([]v1beta1.ResourceRule, len(p.Propagation.Dependents))
	for i, r := range p.Propagation.Dependents {
		dependents[i] = r.ResourceRule
	}
	c.mention(dependents, field.NewPath("spec", "propagation", "dependents"))
	c.warnOfUnheld("spec.propagation", notPropagated)
}

// warnOfUnheld warns of resources that the policy names and that Weir's finalizer is not added to.
func (c *compiled) warnOfUnheld(at string, unheld []schema.GroupResource) {
	for _, gr := range unheld {
		if slices.Contains(explicit(c.resources), gr) && c.about(gr) {
			c.warn(at, fmt.Sprintf("it does not apply to %s: Weir's finalizer is not added to them", gr))
		}
	}
}

// compileJudging compiles what the policies that judge requests have in common.
func (c *compiled) compileJudging(fails v1beta1.FailurePolicy, actions []v1beta1.ValidationAction,
	match *v1beta1.Match, message v1beta1.PolicyMessage) {
	c.failurePolicy, c.actions = fails, actions
	if len(c.actions) == 0 {
		c.actions = refuse
	}
	c.compileMatch(match)
	c.compileMessage(message)
	c.warnOfRisk()
}

// onTrial reports whether the policy only says what it would do.
func (c *compiled) onTrial() bool { return !slices.Contains(c.actions, v1beta1.Deny) }

// refuses reports whether the policy can refuse anything: rules about owners have actions of their
// own.
func (c *compiled) refuses() bool {
	if c.owners != nil && c.owners.Rules != nil {
		r := c.owners.Rules
		if slices.Contains([]v1beta1.RuleAction{r.Dangling, r.Mismatch, r.OtherNamespace, r.NamespacedOwner,
			r.ManyControllers, r.ManyOwners, r.UnservedVersion, r.Cycle}, v1beta1.RuleDeny) {
			return true
		}
	}
	return !c.onTrial()
}

func (c *compiled) compileDrain(p *v1beta1.DrainPolicySpec) {
	c.failurePolicy, c.priority = v1beta1.Ignore, ptr.Deref(p.Priority, 0)
	c.namespaces = c.compileSelector(p.NamespaceSelector, field.NewPath("spec", "namespaceSelector"))
	c.waves = make([]wave, 0, len(p.Waves))
	for i, w := range p.Waves {
		at := field.NewPath("spec", "waves").Index(i)
		cw := wave{Wave: drain.Wave{Name: w.Name, Proceed: w.OnTimeout == v1beta1.Proceed}, resources: w.Resources,
			objects: c.compileSelector(w.ObjectSelector, at.Child("objectSelector"))}
		cw.Timeout = time.Duration(w.TimeoutSeconds) * time.Second
		c.waves = append(c.waves, cw)
		c.mention(w.Resources, at.Child("resources"))
		c.resources = append(c.resources, w.Resources...)
	}
}

func (d *deletion) allows(p v1beta1.PropagationPolicy) bool {
	return d.propagation == nil || len(d.propagation.Allowed) == 0 || slices.Contains(d.propagation.Allowed, p)
}

func (c *compiled) problem(err *field.Error) {
	c.found(err.Field, oneLine(strings.TrimPrefix(err.ErrorBody(), "Invalid value: ")), false)
}

// mistake records an error that the schema and CEL let pass.
func (c *compiled) mistake(at, message string) { c.found(at, message, false) }

func (c *compiled) warn(at, message string) { c.found(at, message, true) }

func (c *compiled) found(at, message string, warning bool) {
	c.problems = append(c.problems, Problem{Policy: c.key, File: c.source.File, Line: c.source.line(), Field: at,
		Message: message, Warning: warning})
}

// firstError returns why the policy is not in force; "" if it is.
func (c *compiled) firstError() string {
	for _, p := range c.problems {
		if !p.Warning {
			return p.Field + ": " + p.Message
		}
	}
	return ""
}

// orphanedByDefault are the resources whose dependents the API server orphans if a delete asks for
// no propagation.
var orphanedByDefault = []schema.GroupResource{{Resource: "replicationcontrollers"}, {Group: "batch", Resource: "jobs"}}

func compare(a, b string) int { return strings.Compare(a, b) }
