package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Types of the conditions of policies, and their reasons.
const (
	// ConditionReady is True while the policy is in force as it is written.
	ConditionReady = "Ready"
	// ReasonCompiled: the policy is in force.
	ReasonCompiled = "Compiled"
	// ReasonInvalid: the policy is not in force; the message says which field is wrong, and how. With failurePolicy
	// Fail, what it would have judged is refused meanwhile.
	ReasonInvalid = "Invalid"

	// ConditionBackFilled is True once every object that existed before the policy carries the finalizer that the
	// policy asks for, and no other does.
	ConditionBackFilled = "BackFilled"
	// ReasonDone: there is nothing left to stamp or to un-stamp.
	ReasonDone = "Done"
	// ReasonInProgress: the controller is at it; status.matched and status.stamped say how far.
	ReasonInProgress = "InProgress"
)

// PolicyStatus is what the controller has made of a policy.
type PolicyStatus struct {
	// Conditions say whether the policy is in force (Ready). Left out, no controller has seen the policy yet.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=8
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Matched is how many objects the policy is about; of a DrainPolicy, how many namespaces. Left out, nobody has
	// counted yet.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	Matched *int64 `json:"matched,omitempty"`
}
