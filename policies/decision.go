package policies

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/policies/cel"
	"github.com/weir-dev/weir/policies/v1beta1"
)

// Decision is the answer to a Question.
type Decision struct {
	// Needs are questions that only the API server can answer. While there are any, the rest of the
	// decision does not hold: answer them all in Question.Answers, and ask again.
	Needs []Access
	// Owners are the owners that a policy asks about and of which nothing is known: an owner may be
	// too new to be known, or may never have existed. Read them, answer in Question.Owners, and ask
	// again.
	Owners []OwnerLookup
	// Discloses are questions whose answers only affect what the user is told; without them it is
	// less. The decision holds as it is.
	Discloses []Access
	// AsksCollector: the decision depends on who collects, which Question.Collector did not say.
	// Without an answer it holds as it is, and refuses.
	AsksCollector bool
	// Binding reports that a policy that may refuse has Needs, and not only one on trial.
	Binding bool

	Allowed bool
	// Code, Reason and Message describe a refusal: 403 Forbidden for what may not be done, 409
	// Conflict for what may be done once something else has changed.
	Code    int32
	Reason  metav1.StatusReason
	Message string

	Warnings []string
	// Audit are audit annotations.
	Audit map[string]string
	// Patch is a mutating webhook's answer to a CREATE or UPDATE.
	Patch []PatchOperation

	// Propagation is, at a DELETE, how it is carried out, by the policy By. Both are empty if no
	// policy says so.
	Propagation v1beta1.PropagationPolicy
	By          string
	// BrakedBy is, at a DELETE, the policy that holds it if more would also be deleted than its
	// brake allows; "" if none does.
	BrakedBy string
	// Finalizers is what Patch does about the finalizer.
	Finalizers FinalizerChange
	// Enforced says, at a DELETE that is allowed, that Weir has to carry it out, because no other
	// collector would do it as Propagation says.
	Enforced bool
	// Arm asks, for a DELETE that is Enforced, to add Wanted to the object and have the request
	// sent again: otherwise the object would be gone before anything could be done. It is never set
	// with dryRun.
	Arm    bool
	Wanted Wanted

	// Errors are policies that could not be judged, and why. The decision already follows their
	// failurePolicy.
	Errors []PolicyError
	// Unjudged reports a refusal whose only reasons are these errors.
	Unjudged bool
}

// FinalizerChange is what a decision does about Weir's finalizer.
type FinalizerChange uint8

// What can be done about the finalizer.
const (
	KeepFinalizers FinalizerChange = iota
	AddFinalizers
	RemoveFinalizers
)

// PatchOperation is one operation of a JSON patch.
type PatchOperation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// PolicyError is a policy that could not be judged.
type PolicyError struct {
	Policy PolicyKey
	Err    string
}

func (e PolicyError) String() string { return e.Policy.String() + ": " + e.Err }

// The keys of audit annotations. The API server puts the webhook's name before them.
const (
	AuditRefused     = "refused"
	AuditWarned      = "warned"
	AuditAudited     = "audited"
	AuditPropagation = "propagation"
	AuditErrors      = "errors"
)

// finding is something that a policy does not accept.
type finding struct {
	policy PolicyKey
	by     *compiled // whose own message is told; nil for none
	says   string    // that message
	code   int32
	// text says what is wrong, way how to do it right; way may have several lines.
	text, way string
	unjudged  bool // the policy could not be judged
}

func (f finding) short() string {
	s := f.text + " (" + f.policy.String() + ")"
	if f.says != "" {
		s += ": " + f.says
	}
	return s
}

func (f finding) long() string {
	switch {
	case f.way == "":
		return f.short()
	case f.says != "": // which may end in an address
		return f.short() + "\n" + f.way
	}
	return f.short() + ". " + f.way
}

// verdict gathers the findings of the policies, in the fixed order in which they are asked.
type verdict struct {
	set                      *Set
	q                        *Question
	refused, warned, audited []finding
	besides                  []finding // warnings about what is done, not about what is not accepted
	errors                   []PolicyError
	discloses                []Access
	others                   bool // findings are about other objects than the request's
	// failing is called with a failure instead of recording it; nil to record it.
	failing func(p *compiled, why error)
}

func (v *verdict) add(by *compiled, f finding, actions []v1beta1.ValidationAction) {
	if !v.q.Part.has(by) {
		return // another part reports it
	}
	f.policy, f.by = by.key, by
	for _, a := range actions {
		switch a {
		case v1beta1.Deny:
			v.refused = append(v.refused, f)
		case v1beta1.Warn:
			v.warned = append(v.warned, f)
		case v1beta1.Audit:
			v.audited = append(v.audited, f)
		}
	}
}

// fail records a policy that could not be judged, and refuses if its failurePolicy says so. A
// policy on trial says that it would have. A failure that the user can cause is refused whatever
// the policy says: it would be a way past it.
func (v *verdict) fail(p *compiled, what string, why error) {
	if !v.q.Part.has(p) {
		return
	}
	if v.failing != nil {
		v.failing(p, why)
		return
	}
	if e := (PolicyError{Policy: p.key, Err: why.Error()}); !slices.Contains(v.errors, e) {
		v.errors = append(v.errors, e)
	}
	switch {
	case errors.Is(why, cel.ErrCost):
		v.add(p, finding{code: 403, unjudged: true,
			text: what + " cannot be judged: " + why.Error(),
			way:  "Make the object smaller, or have the policy's condition changed.",
		}, p.actions)
	case p.failurePolicy == v1beta1.Fail && (p.onTrial() || v.set.failsClosed(p, v.q)):
		v.add(p, finding{code: 403, unjudged: true,
			text: what + " cannot be judged, and the policy's failurePolicy is Fail: " + why.Error(),
			way:  "Fix the policy, or set its failurePolicy to Ignore.",
		}, p.actions)
	}
}

// write puts the findings into the decision.
func (v *verdict) write(d *Decision) {
	d.Allowed = len(v.refused) == 0
	for _, list := range [][]finding{v.refused, v.warned, v.audited, v.besides} {
		v.say(list)
	}
	if !d.Allowed {
		d.Code, d.Reason = 409, metav1.StatusReasonConflict
		// What cannot be fixed by waiting is the stronger word.
		if slices.ContainsFunc(v.refused, func(f finding) bool { return f.code == 403 }) {
			d.Code, d.Reason = 403, metav1.StatusReasonForbidden
		}
		d.Unjudged = !slices.ContainsFunc(v.refused, func(f finding) bool { return !f.unjudged })
		d.Message = strings.Join(texts(v.refused, finding.long), "\n")
		d.audit(AuditRefused, strings.Join(texts(v.refused, finding.short), "; "))
	}
	d.Warnings = texts(v.warned, finding.short)
	d.audit(AuditWarned, strings.Join(d.Warnings, "; "))
	if d.Allowed {
		d.Warnings = append(d.Warnings, texts(v.besides, finding.short)...)
	}
	d.audit(AuditAudited, strings.Join(texts(v.audited, finding.short), "; "))
	d.Errors, d.Discloses = v.errors, v.discloses
	d.audit(AuditErrors, strings.Join(texts(v.errors, PolicyError.String), "; "))
}

func (d *Decision) audit(key, value string) {
	if value == "" {
		return
	}
	if d.Audit == nil {
		d.Audit = map[string]string{}
	}
	d.Audit[key] = value
}

// mostTexts bounds what a user is told at once: an object can have ten thousand owner references,
// all of them wrong.
const mostTexts = 10

func texts[T any](list []T, text func(T) string) []string {
	var out []string
	for i, x := range list {
		if i == mostTexts {
			return append(out, fmt.Sprintf("… and %d more", len(list)-i))
		}
		out = append(out, text(x))
	}
	return out
}
