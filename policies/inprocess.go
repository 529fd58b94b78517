package policies

import (
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"
	admissioncel "k8s.io/apiserver/pkg/admission/plugin/cel"

	"github.com/weir-dev/weir/policies/cel"
	"github.com/weir-dev/weir/policies/v1beta1"
)

// InProcess is what the API server can judge of a policy without a webhook: a
// ValidatingAdmissionPolicy and its binding. They need Kubernetes 1.30.
type InProcess struct {
	Policy PolicyKey
	// Admission and Binding are nil if nothing of the policy can be judged so.
	Admission *admissionregistrationv1.ValidatingAdmissionPolicy
	Binding   *admissionregistrationv1.ValidatingAdmissionPolicyBinding
	// LeftOut are the parts of the policy that need Weir.
	LeftOut []LeftOut
	// Judged are the webhooks whose requests about the policy the API server judges as they would.
	// They get only what LeftToWeir says.
	Judged []Webhook
}

// LeftOut is a part of a policy that the API server cannot judge, and why.
type LeftOut struct {
	Field, Why string
}

// InProcess compiles each working policy of the set, by kind and name, for API servers of a
// version. A broken policy judges nothing. beside Weir nothing is refused that Weir would allow.
func (s *Set) InProcess(v *version.Version, beside bool) []InProcess {
	var out []InProcess
	for _, c := range s.policies {
		if !c.ready() {
			continue
		}
		p := inProcess{set: s, c: c, beside: beside}
		p.ownMessage(v)
		switch {
		case c.deletion != nil:
			p.compileDeletion()
		case c.owners != nil:
			p.compileOwners()
		default:
			p.leaveOut("spec.waves", "the order of a namespace's content is kept by Weir")
		}
		out = append(out, p.result(v))
	}
	return out
}

// inProcess is a policy that is being compiled.
type inProcess struct {
	set         *Set
	c           *compiled
	beside      bool                                // Weir judges, too
	second      bool                                // the propagation of another policy may hold
	deletes     bool                                // it judges DELETEs
	updates     func(schema.GroupResource) []string // subresources whose updates it judges; nil for none
	creates     bool
	conditions  []admissionregistrationv1.MatchCondition
	variables   []admissionregistrationv1.Variable
	validations []admissionregistrationv1.Validation
	says        bool // there is a variable message
	left        []LeftOut
}

func (p *inProcess) leaveOut(field, why string) { p.left = append(p.left, LeftOut{field, why}) }

func (p *inProcess) match(name, expression string) {
	if expression != "" {
		p.conditions = append(p.conditions, admissionregistrationv1.MatchCondition{Name: name, Expression: expression})
	}
}

func (p *inProcess) let(name, expression string) {
	p.variables = append(p.variables, admissionregistrationv1.Variable{Name: name, Expression: expression})
}

// refuse refuses a request for which no alternative is true, and for which all conditions about the
// namespace are: only validations can evaluate those. what and way are CEL; the policy's own
// message goes between them. If its expression fails, the API server shows fallback instead. The
// API server evaluates messages of requests that pass, too, so they test the variable passes, which
// holds the alternatives; with passes "" the messages do not depend on what the alternatives test.
func (p *inProcess) refuse(passes, what, way string, alternatives ...string) {
	says, fallback := what, ""
	switch {
	case p.says:
		own := ""
		if p.c.message != "" {
			own = ": " + p.c.message
		}
		says += " + (variables.message.trim() == '' ? " + celString(own) + " : ': ' + variables.message)"
		fallback = p.c.key.String() + " refuses it" + own
	case p.c.message != "":
		says += " + " + celString(": "+p.c.message)
	}
	if way != "" {
		says += " + '. ' + " + way
	}
	for _, one := range p.c.conditions {
		if cel.Mentions(one.Text, admissioncel.NamespaceVarName) {
			alternatives = append([]string{"!(" + one.Text + ")"}, alternatives...)
		}
	}
	expression := strings.Join(alternatives, " || ")
	if passes != "" {
		p.let(passes, expression)
		expression = "variables." + passes
		says = expression + " ? '' : " + says
	}
	p.validations = append(p.validations, admissionregistrationv1.Validation{
		Expression: expression, Message: fallback, MessageExpression: says, Reason: new(metav1.StatusReasonForbidden)})
}

// ownMessage makes the API server evaluate the policy's messageExpression.
func (p *inProcess) ownMessage(v *version.Version) {
	if p.c.says == nil {
		return
	}
	if err := p.c.says.KnownIn(v); err != nil {
		p.leaveOut("spec.messageExpression", fmt.Sprintf("Kubernetes %s does not know it: %v", v, err))
		return
	}
	p.says = true
	p.let("message", p.c.says.Text)
}

// CEL for the object of a request, as Question.what and as kubectl name it.
const (
	celResource  = "request.resource.resource + (request.resource.group == '' ? '' : '.' + request.resource.group)"
	celNamespace = "has(request.namespace) && request.namespace != '' && request.resource.resource != 'namespaces'"
	celWhat      = celResource + ` + ' "' + NAME + '"' + (` + celNamespace +
		` ? ' in namespace "' + request.namespace + '"' : '')`
	celPasted = celResource + ` + ' ' + oldObject.metadata.name + (` + celNamespace +
		` ? ' -n ' + request.namespace : '')`
)

// celAsked is the CEL for what a DELETE asks for, as optionAsks and finalizerAsks return it.
const celAsked = "has(request.options) && request.options != null && has(request.options.propagationPolicy) " +
	"? request.options.propagationPolicy " +
	": has(request.options) && request.options != null && has(request.options.orphanDependents) " +
	"? (request.options.orphanDependents ? 'Orphan' " +
	": request.resource.resource == 'namespaces' ? 'Foreground' : 'Background') : variables.before"

const celBefore = "!has(oldObject.metadata.finalizers) ? '' : 'orphan' in oldObject.metadata.finalizers ? 'Orphan' : " +
	"'foregroundDeletion' in oldObject.metadata.finalizers ? 'Foreground' : ''"

func celConfirmed(variable string) string {
	annotation := variable + ".metadata.annotations['" + v1beta1.ConfirmDeleteAnnotation + "']"
	uid := variable + ".metadata.uid"
	return has(variable, "annotations") +
		" && '" + v1beta1.ConfirmDeleteAnnotation + "' in " + variable + ".metadata.annotations" +
		" && (" + annotation + " == " + uid + " || " + annotation + ".startsWith(" + uid + " + '/'))"
}

func (p *inProcess) compileDeletion() {
	d := p.c.deletion
	p.let("what", strings.ReplaceAll(celWhat, "NAME", "oldObject.metadata.name"))
	p.let("pasted", celPasted)
	p.let("collects", "request.operation == 'DELETE' && ("+celCollects+")")
	p.let("ending", "namespaceObject != null && has(namespaceObject.metadata.deletionTimestamp)")
	p.whom(p.c.guards())
	p.match("not-terminating", notTerminating+" || request.operation == 'DELETE' && "+changesPropagation)
	if p.c.protectsFrom(v1beta1.ProtectDelete) {
		p.protect(d.protection)
	}
	if d.propagation != nil {
		p.propagate(d.propagation)
	}
	if d.brake != nil {
		p.leaveOut("spec.brake", "only Weir can hold a deletion until a person decides")
	}
	if d.archive != nil {
		p.leaveOut("spec.archive", "only Weir can record what is deleted")
	}
	if p.c.about(pods) && p.c.protectsFrom(v1beta1.ProtectEvict) {
		p.leaveOut("spec.match.resources", "the API server shows no pod for an eviction, so evictions are not judged")
	}
}

// protect requires confirmations.
func (p *inProcess) protect(protection *v1beta1.Protection) {
	if protection.MaxDependents != nil {
		p.leaveOut("spec.protection", "the API server cannot count what would also be deleted")
		return
	}
	if !protection.Confirmation.Asked() {
		return
	}
	p.deletes = true
	p.let("confirmed", celConfirmed("oldObject"))
	passes := []string{"request.operation != 'DELETE'", "variables.confirmed", "has(oldObject.metadata.deletionTimestamp)"}
	switch {
	case !p.c.guards():
		passes = append(passes, "variables.ending")
	case p.c.about(schema.GroupResource{Resource: "configmaps"}),
		p.c.about(schema.GroupResource{Resource: "serviceaccounts"}):
		passes = append(passes, "variables.collects && request.resource.group == '' && "+
			"request.resource.resource + '/' + oldObject.metadata.name in "+
			"['configmaps/kube-root-ca.crt', 'serviceaccounts/default', 'configmaps/"+v1beta1.CollectorCanary+"']")
	}
	if p.c.guards() {
		p.leaveOut("spec.protection.inCascades", "a garbage collector is refused, and tries again until the object is "+
			"confirmed: only Weir releases it, and only Weir refuses the delete of its Namespace or definition beforehand")
	}
	confirm := "kubectl annotate ' + variables.pasted + ' --overwrite " +
		v1beta1.ConfirmDeleteAnnotation + "=' + oldObject.metadata.uid"
	p.refuse("mayDelete", "variables.what + ' may not be deleted without confirmation'",
		"'To delete it, confirm and delete again: "+confirm, passes...)
	p.guardSelection(confirm)
	p.leaveOut("spec.protection.confirmation", "only Weir can tell who confirmed, when, and for which objects: any "+
		"confirmation with the object's uid passes")
}

// guardSelection judges updates of labels that take an object out of the policy's selection.
func (p *inProcess) guardSelection(confirm string) {
	if !p.c.guardsSelection() {
		return
	}
	if p.c.namespaces != nil && p.c.about(schema.GroupResource{Resource: "namespaces"}) {
		p.leaveOut("spec.protection.guardSelection",
			"for the update of a Namespace the API server selects by its new labels")
	}
	if len(p.c.conditionFields()) > 0 {
		p.leaveOut("spec.protection.guardSelection", "conditions are not evaluated again for the object after the update")
	}
	if p.c.objects == nil {
		return
	}
	if p.c.asksHow {
		p.leaveOut("spec.protection.guardSelection", "a condition asks about the request, which is no DELETE here")
		return
	}
	p.updates = metadataSubresources
	passes := []string{"request.operation != 'UPDATE'", "!(" + leaves(p.c.objects) + ")",
		"variables.confirmed", celConfirmed("object")}
	if !p.c.guards() {
		passes = append(passes, "variables.ending")
	}
	p.refuse("mayUpdate", "variables.what + ' may not be updated without confirmation: it would no longer be protected'",
		"'To update it, confirm and update again: "+confirm, passes...)
}

// propagate checks what deletes ask for against what is allowed.
func (p *inProcess) propagate(propagation *v1beta1.Propagation) {
	if propagation.Default != "" {
		p.leaveOut("spec.propagation.default", "only Weir can change the propagation of a delete")
	}
	if len(propagation.Dependents) > 0 {
		p.leaveOut("spec.propagation.dependents", "only Weir can treat dependents by their kinds")
	}
	if p.c.readsAnnotation() {
		p.leaveOut("spec.propagation.annotation", "only Weir can carry out a delete as the object says")
	}
	if len(propagation.Allowed) == 0 || p.beside && p.c.readsAnnotation() {
		return
	}
	if p.second = p.comesSecond(); p.second {
		return
	}
	p.deletes = true
	allowed := make([]string, len(propagation.Allowed))
	for i, a := range propagation.Allowed {
		allowed[i] = string(a)
	}
	slices.Sort(allowed)
	p.let("before", celBefore)
	p.let("asked", celAsked)
	p.let("carried", "variables.asked != '' ? variables.asked : "+isAbout(orphanedByDefault)+" ? 'Orphan' : 'Background'")
	passes := []string{"request.operation != 'DELETE'", "variables.carried in " + celList(allowed),
		"variables.collects", "variables.ending",
		"has(oldObject.metadata.deletionTimestamp) && variables.asked == variables.before"}
	if p.beside && propagation.Default != "" {
		passes = append(passes, "!("+changesPropagation+") || variables.asked == 'Background'")
	}
	if p.set.own != "" {
		passes = append(passes, "has(request.namespace) && request.namespace == "+celString(p.set.own))
	}
	if never := slices.DeleteFunc(slices.Concat(notPropagated, explicit(p.c.resources)),
		func(gr schema.GroupResource) bool { return propagates(gr) || !p.c.about(gr) }); len(never) > 0 {
		passes = append(passes, isAbout(never))
	}
	p.refuse("mayPropagate", "variables.what + ' may not be deleted with propagation policy ' + variables.carried + "+
		"': allowed "+
		oneOf(propagation.Allowed)+"'", "'To delete it as allowed: kubectl delete ' + variables.pasted + "+
		"' --cascade="+strings.ToLower(allowed[0])+"'", passes...)
}

// comesSecond reports whether the propagation of another policy may hold for an object of this one.
func (p *inProcess) comesSecond() bool {
	first := true
	for _, c := range p.set.deletion {
		if c == p.c {
			first = false
			continue
		}
		holds := c.ready() && c.deletion.propagation != nil && !c.asksWho() && !p.c.asksWho()
		if holds && (!p.beside || first && !c.onTrial() && c.meets(p.c)) {
			p.leaveOut("spec.priority", "the API server asks every policy that is about an object, not only the first")
			return p.beside
		}
	}
	return false
}

// meets reports whether two policies may be about the same resource.
func (c *compiled) meets(other *compiled) bool {
	return wildcard(c.resources) && wildcard(other.resources) ||
		slices.ContainsFunc(explicit(c.resources), other.about) || slices.ContainsFunc(explicit(other.resources), c.about)
}

// result returns only what is left out if the API server can judge nothing.
func (p *inProcess) result(v *version.Version) InProcess {
	for _, one := range p.c.conditions {
		if err := one.KnownIn(v); err != nil {
			p.left, p.validations = nil, nil
			p.leaveOut(one.At, fmt.Sprintf("Kubernetes %s does not know it, so nothing of the policy is judged: %v", v, err))
		}
	}
	before := len(p.left)
	constraints := p.constraints() // may leave out something
	out := InProcess{Policy: p.c.key, LeftOut: p.left}
	if len(p.validations) == 0 || p.beside && len(p.left) > before {
		return out
	}
	name := p.c.key.Name
	if p.c.owners != nil {
		name += "-owner-references"
	}
	fails := admissionregistrationv1.FailurePolicyType(p.c.failurePolicy)
	var actions []admissionregistrationv1.ValidationAction
	for _, a := range p.c.actions {
		actions = append(actions, admissionregistrationv1.ValidationAction(a))
	}
	if out.Judged = p.judged(); p.beside && len(out.Judged) == 0 {
		fails = admissionregistrationv1.Ignore // Weir says why
	}
	objects := inProcessOf(name, admissionregistrationv1.ValidatingAdmissionPolicySpec{
		FailurePolicy: &fails, MatchConstraints: constraints, MatchConditions: p.conditions,
		Variables: p.variables, Validations: p.validations,
	}, actions)
	out.Admission, out.Binding = objects.Admission, objects.Binding
	out.Binding.Spec.MatchResources = p.selected()
	return out
}

// judged returns the webhooks that have nothing to add about the policy. Weir alone reports of a
// failing condition no more than its class. And an expression that costs the API server too much
// passes under Ignore, where Weir refuses: users decide how many owners an object names.
func (p *inProcess) judged() (out []Webhook) {
	if len(p.c.conditions) > 0 || p.c.failurePolicy != v1beta1.Fail && p.c.owners != nil &&
		p.c.owners.BlockOwnerDeletion == v1beta1.BlockDeny {
		return nil
	}
	if o := p.c.owners; o != nil {
		if o.Rules == nil && o.BlockOwnerDeletion != v1beta1.BlockRequirePermission &&
			o.BlockOwnerDeletion != v1beta1.BlockClear {
			out = append(out, WebhookOwners)
		}
		return out
	}
	d := p.c.deletion
	if way := d.propagation; d.brake != nil || d.archive != nil ||
		d.protection != nil && d.protection.MaxDependents != nil ||
		way != nil && (way.Default != "" || len(way.Dependents) > 0 || p.second || p.c.readsAnnotation()) {
		return nil
	}
	return append(out, WebhookDelete, WebhookGuard) // an update may confirm: only Weir can tell by whom
}
