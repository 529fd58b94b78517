package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// HeldCollection is a set of objects that Weir does not delete until a person decides. Either Weir
// infers that they are garbage, and they exceed a limit: its name is the kind of their owners
// ("widgets.example.com"). Or a DeletionPolicy's brake holds them: its name is "requested." and the
// kind of the deleted objects. It goes away by itself when nothing is held any more.
//
// Weir writes the status. The spec is a person's decision: whoever may update HeldCollections can
// decide. Weir ignores a HeldCollection without status that it did not create. If one is deleted
// while something is held, Weir creates it again.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=held,categories=weir
// +kubebuilder:printcolumn:name="Objects",type=integer,JSONPath=`.status.objects`,description="All that would go"
// +kubebuilder:printcolumn:name="Cause",type=string,JSONPath=`.status.cause.type`,description="Who began it: Inferred is Weir, Requested somebody who deleted"
// +kubebuilder:printcolumn:name="Because",type=string,JSONPath=`.status.conclusions`
// +kubebuilder:printcolumn:name="Digest",type=string,JSONPath=`.status.digest`
// +kubebuilder:printcolumn:name="Decision",type=string,JSONPath=`.spec.decision`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Held")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Held")].message`,priority=1
type HeldCollection struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is that of every object.
	//
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what a person decides. Left out, everything stays held.
	//
	// +optional
	Spec HeldCollectionSpec `json:"spec,omitempty"`

	// status is what is held, and why.
	//
	// +optional
	Status HeldCollectionStatus `json:"status,omitempty"`
}

// HeldCollectionSpec is what a person decides.
//
// +kubebuilder:validation:XValidation:rule="!has(self.decision) || has(self.digest)",message="a decision needs a digest: copy it from the status"
type HeldCollectionSpec struct {
	// decision is Proceed, which deletes the objects that digest identifies, or Discard, which
	// keeps them. For the cause Inferred, Discard also removes their references to owners that are
	// gone. Left out, everything stays held.
	//
	// +optional
	Decision HeldDecision `json:"decision,omitempty"`

	// digest is status.digest as the person saw it. What was found later is not part of the decision.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[0-9a-f]+$`
	Digest string `json:"digest,omitempty"`
}

// HeldDecision is what becomes of what is held.
//
// +kubebuilder:validation:Enum=Proceed;Discard
type HeldDecision string

// The decisions.
const (
	// ProceedHeld deletes what is held.
	ProceedHeld HeldDecision = "Proceed"
	// DiscardHeld keeps what is held, and releases it from owners that are gone.
	DiscardHeld HeldDecision = "Discard"
)

// ConditionHeld is the condition of a HeldCollection: True while something waits for a decision.
const ConditionHeld = "Held"

// Its reasons.
const (
	// ReasonAwaitsDecision: a person has to decide.
	ReasonAwaitsDecision = "AwaitsDecision"
	// ReasonDecided: a person has, and what was decided is being done.
	ReasonDecided = "Decided"
	// ReasonOwnersUnknown: it is not known of some owners whether they are there.
	ReasonOwnersUnknown = "OwnersUnknown"
	// ReasonNothingHeld: nothing is held any more, and the HeldCollection goes.
	ReasonNothingHeld = "NothingHeld"
)

// HeldCollectionStatus is what is held, and why.
type HeldCollectionStatus struct {
	// conditions is one, Held: whether something waits for a decision, what is held, the limit that
	// was exceeded, and what became of a decision.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// cause is what the objects are held for.
	//
	// +optional
	Cause HeldCause `json:"cause,omitzero"`

	// conclusions are what makes the objects garbage, of the cause Inferred.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=3
	// +listType=set
	Conclusions []HeldConclusion `json:"conclusions,omitempty"`

	// since is when the first object was held.
	//
	// +optional
	Since *metav1.Time `json:"since,omitempty"`

	// digest identifies the set of objects, by uid. For those that were deleted by request it also
	// covers how much would be deleted with each.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Digest string `json:"digest,omitempty"`

	// held is how many objects have that digest, without what they own.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	Held int64 `json:"held,omitempty"`

	// objects is how many objects would go, with all that they own. Above 100,000 it may be more.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	Objects int64 `json:"objects,omitempty"`

	// kinds are the same, by kind, the kinds with most objects first.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=20
	// +listType=atomic
	Kinds []HeldKind `json:"kinds,omitempty"`

	// samples are some of the objects that have the digest.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=10
	// +listType=atomic
	Samples []HeldSample `json:"samples,omitempty"`
}

// HeldCauseType is who began what is held.
//
// +kubebuilder:validation:Enum=Inferred;Requested
type HeldCauseType string

// The types of causes.
const (
	// HeldInferred is garbage of which Weir has concluded, and not seen, that its owners are gone.
	HeldInferred HeldCauseType = "Inferred"
	// HeldForRequest is objects that were deleted by request, of which a policy's brake holds what
	// would also be deleted.
	HeldForRequest HeldCauseType = "Requested"
)

// HeldCause is what objects are held for.
type HeldCause struct {
	// type is Inferred, or Requested.
	//
	// +required
	Type HeldCauseType `json:"type,omitempty"`

	// group is the API group of the owners, or of the deleted objects; left out, the core group.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Group string `json:"group,omitempty"`

	// resource is that of the owners, if the cause is Inferred, or of the deleted objects.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Resource string `json:"resource,omitempty"`
}

// HeldConclusion is from what Weir concludes that owners are gone.
//
// +kubebuilder:validation:Enum=OwnerNotFound;DefinitionGone;ReferenceEdited
type HeldConclusion string

// HeldKind is how many objects of a kind would go.
type HeldKind struct {
	// group is the API group; left out, the core group.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Group string `json:"group,omitempty"`

	// resource is the lower-case plural name.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Resource string `json:"resource,omitempty"`

	// objects is how many.
	//
	// +required
	// +kubebuilder:validation:Minimum=1
	Objects int64 `json:"objects,omitempty"`
}

// HeldSample is one of the objects that are held.
type HeldSample struct {
	// group is its API group; left out, the core group.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Group string `json:"group,omitempty"`

	// resource is the lower-case plural name of its kind.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Resource string `json:"resource,omitempty"`

	// namespace is its namespace; left out, it is in none.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`

	// name is its name.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// why says why it would go.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Why string `json:"why,omitempty"`
}

// HeldCollectionList is a list of HeldCollection.
//
// +kubebuilder:object:root=true
type HeldCollectionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []HeldCollection `json:"items"`
}
