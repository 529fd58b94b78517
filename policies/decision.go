package policies

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/policies/v1alpha1"
)

// Decision is the answer to a Question.
type Decision struct {
	// Needs are questions that only the API server can answer. While there are any, the rest of the decision does not
	// hold: answer them all in Question.Answers, and ask again.
	Needs []Access

	Allowed bool
	// Code, Reason and Message are those of a refusal: 403 Forbidden for what may not be done, 409 Conflict for what may
	// be done once something else has changed.
	Code    int32
	Reason  metav1.StatusReason
	Message string

	Warnings []string
	// Audit are audit annotations.
	Audit map[string]string
	// Patch is what a mutating webhook answers to a CREATE or UPDATE.
	Patch []PatchOperation

	// Propagation is, at a DELETE, how it is carried out, by the policy By. Both are empty where no policy says it.
	Propagation v1alpha1.PropagationPolicy
	By          string
	// Stamp is what Patch does about the finalizer.
	Stamp Stamp
	// Shaped says, at a DELETE that is not refused, that Weir has to carry it out, because nobody else would do it as
	// Propagation says.
	Shaped bool
	// Arm asks, of a DELETE that is Shaped, that Mark be put on the object and the request be sent again: without it the
	// object would be gone before anything could be done. It is never set with dryRun.
	Arm  bool
	Mark Mark

	// Errors are policies that could not be judged, and why. What their failurePolicy makes of it is in the decision.
	Errors []PolicyError
}

// Stamp is what a decision does about Weir's finalizer.
type Stamp uint8

// What can be done about the finalizer.
const (
	KeepStamp Stamp = iota
	PutStamp
	TakeStamp
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
	code   int32
	// text says what is wrong, on how what is right instead; way may have several lines.
	text, way string
}

func (f finding) short() string { return f.text + " (" + f.policy.String() + ")" }

func (f finding) long() string {
	s := f.short()
	if f.way != "" {
		s += ". " + f.way
	}
	return s
}

// verdict gathers what the policies say, in the order in which they are asked, which is fixed.
type verdict struct {
	refused, warned, audited []finding
	errors                   []PolicyError
}

func (v *verdict) add(f finding, actions []v1alpha1.ValidationAction) {
	for _, a := range actions {
		switch a {
		case v1alpha1.Deny:
			v.refused = append(v.refused, f)
		case v1alpha1.Warn:
			v.warned = append(v.warned, f)
		case v1alpha1.Audit:
			v.audited = append(v.audited, f)
		}
	}
}

// fail records a policy that could not be judged, and refuses if it says so.
func (v *verdict) fail(p *compiled, what, why string) {
	v.errors = append(v.errors, PolicyError{Policy: p.key, Err: why})
	if p.failurePolicy == v1alpha1.Fail {
		v.refused = append(v.refused, finding{policy: p.key, code: 403,
			text: what + " cannot be judged, and the policy's failurePolicy is Fail: " + why,
			way:  "Mend the policy, or set its failurePolicy to Ignore.",
		})
	}
}

// write puts what was gathered into the decision.
func (v *verdict) write(d *Decision) {
	d.Allowed = len(v.refused) == 0
	if !d.Allowed {
		d.Code, d.Reason = 409, metav1.StatusReasonConflict
		// What cannot be mended by waiting is the stronger word.
		if slices.ContainsFunc(v.refused, func(f finding) bool { return f.code == 403 }) {
			d.Code, d.Reason = 403, metav1.StatusReasonForbidden
		}
		d.Message = strings.Join(texts(v.refused, finding.long), "\n")
		d.audit(AuditRefused, strings.Join(texts(v.refused, finding.short), "; "))
	}
	d.Warnings = texts(v.warned, finding.short)
	d.audit(AuditWarned, strings.Join(d.Warnings, "; "))
	d.audit(AuditAudited, strings.Join(texts(v.audited, finding.short), "; "))
	d.Errors = v.errors
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

// mostTexts is how much a user is told at once: an object can have ten thousand owner references, all of them wrong.
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
