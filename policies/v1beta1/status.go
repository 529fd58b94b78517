package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Types of the conditions of policies, and their reasons.
const (
	// ConditionReady is True while the policy holds: it is Valid and Enforced. Where it is not True it
	// has the reason and the message of the one of these two that is not.
	ConditionReady = "Ready"
	// ReasonInForce: the policy holds. The message says what happens while Weir does not answer.
	ReasonInForce = "InForce"

	// ConditionValid is True while the policy can be judged as it is written.
	ConditionValid = "Valid"
	// ReasonCompiled: it can.
	ReasonCompiled = "Compiled"
	// ReasonInvalid: the policy is not in force; the message says which field is wrong, and how. With failurePolicy
	// Fail, what it would have judged is refused meanwhile.
	ReasonInvalid = "Invalid"

	// ConditionBackFilled is True once every object that existed before the policy carries the finalizer that the
	// policy asks for, and no other does. Of a policy that is not in force it is Unknown.
	ConditionBackFilled = "BackFilled"
	// ReasonDone: the finalizer is on all objects that should have it, and on no others.
	ReasonDone = "Done"
	// ReasonInProgress: the controller is at it; status.matched and status.withFinalizer say how far.
	ReasonInProgress = "InProgress"

	// ConditionEnforced is True while the API server asks Weir about what the policy may be about, and
	// gets an answer. It is tried every 20 s, and when the webhook configurations change. While it is
	// False requests are not judged: they pass, or with failurePolicy Fail are refused. Unknown means
	// that it could not be tried. Of a DrainPolicy it is whether waves hold: beside the built-in
	// namespace controller they do only while the API server asks, and without that all goes at once.
	// Where Weir empties namespaces itself they hold without it.
	ConditionEnforced = "Enforced"
	// ReasonReached: the API server asked, and was answered.
	ReasonReached = "Reached"
	// ReasonNotReached: the API server does not get through to the webhook, does not believe its certificate, or gets no
	// answer that it takes. The message has the API server's own words.
	ReasonNotReached = "NotReached"
	// ReasonNotAsked: the API server does not ask, though a webhook configuration says that it should.
	ReasonNotAsked = "NotAsked"
	// ReasonNotConfigured: no webhook configuration could be written, or it is not configured where the webhook is.
	ReasonNotConfigured = "NotConfigured"
	// ReasonDrained: of a DrainPolicy: Weir empties namespaces itself, in its order.
	ReasonDrained = "Drained"
	// ReasonNotDrained: of a DrainPolicy: Weir is told to drain no namespaces.
	ReasonNotDrained = "NotDrained"
	// ReasonNotValid: the policy is not in force: the condition Valid says why.
	ReasonNotValid = "NotValid"
	// ReasonNotTried: it could not be tried, for another reason than the webhook.
	ReasonNotTried = "NotTried"

	// ConditionResolved is True while every resource that the policy names is served. Where none is, be it that its
	// CustomResourceDefinition is not installed yet, the policy matches nothing; of what is served it holds.
	ConditionResolved = "Resolved"
	// ReasonServed: all are.
	ReasonServed = "Served"
	// ReasonNotServed: the message names those that are not. Mostly it is a typing error.
	ReasonNotServed = "NotServed"

	// ConditionInProcess is True while the API server judges all of the policy by itself, with a ValidatingAdmissionPolicy
	// that Weir has written: then the policy holds also while Weir is away. That the API server does is tried every 15 s.
	ConditionInProcess = "InProcess"
	// ReasonJudged: it judges all of it.
	ReasonJudged = "Judged"
	// ReasonPartial: it judges a part of it. The message names what needs Weir, and why.
	ReasonPartial = "Partial"
	// ReasonNeedsWeir: it judges nothing of it. The message says why.
	ReasonNeedsWeir = "NeedsWeir"
	// ReasonNotWritten: the ValidatingAdmissionPolicy could not be written.
	ReasonNotWritten = "NotWritten"
)

// PolicyStatus is what the controller has made of a policy.
type PolicyStatus struct {
	// conditions say what is made of the policy. Ready says whether it holds, and is the one to wait
	// for. The others explain it: whether it can be judged (Valid), whether the API server asks Weir
	// (Enforced; of a DrainPolicy, whether its waves hold), whether what it names is served
	// (Resolved), and whether it holds also while Weir is away (InProcess).
	//
	// +optional
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// matched is how many objects the policy matches; of a DrainPolicy, how many namespaces. Left
	// out, they were not counted yet, or are not, because the policy has conditions.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	Matched *int64 `json:"matched,omitempty"`
}
