package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// DeletionPolicy says how the objects it matches may be deleted, and how far the deletion goes.
//
// Several policies may match an object. The protection of each applies, and one refusal is enough. The propagation of one of them applies:
// the one with the highest priority, and among equals the one with the first name.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=delpol,categories=weir
// +kubebuilder:printcolumn:name="Default",type=string,JSONPath=`.spec.propagation.default`,description="How a delete that asks for nothing, or for Background, is carried out"
// +kubebuilder:printcolumn:name="Actions",type=string,JSONPath=`.spec.validationActions`,description="What happens to a delete that the policy does not accept"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Enforced",type=string,JSONPath=`.status.conditions[?(@.type=="Enforced")].status`,description="Whether the API server asks Weir about what the policy may be about"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Priority",type=integer,JSONPath=`.spec.priority`,priority=1
// +kubebuilder:printcolumn:name="Matched",type=integer,JSONPath=`.status.matched`,priority=1
// +kubebuilder:printcolumn:name="Stamped",type=integer,JSONPath=`.status.stamped`,priority=1
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
// +kubebuilder:printcolumn:name="Reached",type=string,JSONPath=`.status.conditions[?(@.type=="Enforced")].reason`,priority=1,description="Why the policy is not enforced, or Reached"
type DeletionPolicy struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is that of every object.
	//
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the user asks for.
	//
	// +required
	Spec DeletionPolicySpec `json:"spec"`

	// status is what the controller has made of it.
	//
	// +optional
	Status DeletionPolicyStatus `json:"status,omitempty"`
}

// DeletionPolicySpec is what the user asks for.
//
// +kubebuilder:validation:XValidation:rule="has(self.propagation) || has(self.protection) || has(self.brake)",message="set propagation, protection or brake: a policy without any asks for nothing"
type DeletionPolicySpec struct {
	// match says which objects the policy is about. Its conditions are asked as for the DELETE of the object (object is
	// null, oldObject is the object), also to find out, at a CREATE or UPDATE, how its deletion is to be carried out.
	//
	// +required
	Match Match `json:"match"`

	// priority decides whose propagation applies if several policies match: the policy with the highest priority, and among equals
	// the one with the first name. Left out, it is 0.
	//
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=-1000000
	// +kubebuilder:validation:Maximum=1000000
	Priority int32 `json:"priority,omitempty"`

	// propagation says how far a deletion goes. Left out, as far as Kubernetes takes it.
	//
	// +optional
	Propagation *Propagation `json:"propagation,omitempty"`

	// protection refuses deletions that are likely mistakes. Left out, no delete is refused because of what would also be deleted.
	//
	// +optional
	Protection *Protection `json:"protection,omitempty"`

	// brake holds deletions by which very much would also be deleted, until a person decides. Left out, what was asked for goes on at once.
	//
	// +optional
	Brake *Brake `json:"brake,omitempty"`

	// validationActions are what happens to a delete that protection or propagation.allowed does not accept: Deny
	// refuses it, Warn lets it pass with a warning to the client, Audit lets it pass with an audit annotation. Deny and
	// Warn together would say the same thing twice. Without Deny the policy is on trial: it refuses nothing, not even if it
	// cannot be judged, and its propagation changes nothing, and is only reported. Left out, it is Deny.
	//
	// +optional
	// +kubebuilder:default={Deny}
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:validation:XValidation:rule="!('Deny' in self && 'Warn' in self)",message="Deny and Warn cannot be used together: a refusal already says what a warning would"
	// +listType=set
	ValidationActions []ValidationAction `json:"validationActions,omitempty"`

	// failurePolicy is what happens to a delete while this policy cannot be judged: Weir's webhook does not answer, or
	// the policy is broken, or a condition fails. Ignore lets it pass, Fail refuses it. It applies to deletes, and to
	// updates that guardSelection finds by selectors: other creates and updates never depend on Weir.
	// Fail does not hold in kube-system and kube-node-lease, unless the namespaceSelector asks for these by kubernetes.io/metadata.name, nor in Weir's own namespace. Left out, it is Ignore.
	//
	// +optional
	// +kubebuilder:default=Ignore
	FailurePolicy FailurePolicy `json:"failurePolicy,omitempty"`
}

// PropagationPolicy is how far a deletion goes; the words are those of DeleteOptions.
//
// +kubebuilder:validation:Enum=Background;Foreground;Orphan
type PropagationPolicy string

// The propagation policies.
const (
	// Background removes the object at once, its dependents after it.
	Background PropagationPolicy = "Background"
	// Foreground keeps the object until its dependents are gone.
	Foreground PropagationPolicy = "Foreground"
	// Orphan keeps the dependents, and removes their references to the object.
	Orphan PropagationPolicy = "Orphan"
)

// Propagation says how far a deletion goes. It does not apply to pods and namespaces, whose propagation cannot be changed
// once they are being deleted, nor to nodes and csinodes, which have to go with their machine while Weir does not run, nor to roles and their
// bindings, which Weir may not always change.
//
// +kubebuilder:validation:XValidation:rule="has(self.default) || has(self.allowed) || has(self.dependents)",message="set at least one of default, allowed and dependents"
// +kubebuilder:validation:XValidation:rule="!has(self.default) || !has(self.allowed) || self.default in self.allowed",message="allowed must contain default: a delete that asks for nothing would be refused"
type Propagation struct {
	// default is the propagation of deletes that ask for Background, or for nothing. Weir treats the two alike: kubectl
	// asks for Background unless told otherwise. Left out, a delete is carried out as it asks; one of a ReplicationController
	// or a Job that asks for nothing then orphans, as the API server has it.
	//
	// +optional
	Default PropagationPolicy `json:"default,omitempty"`

	// allowed are the propagation policies that a delete may ask for. A delete to which default applies is always
	// allowed. Left out, all are.
	//
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=3
	// +listType=set
	Allowed []PropagationPolicy `json:"allowed,omitempty"`

	// dependents say for kinds of dependents what becomes of them; the first entry that names a kind applies. They are about
	// objects that name the deleted one as their owner, not about the dependents of those, and hold where the deletion
	// is carried out in Background or Foreground. Left out, and for kinds that no entry names, dependents are treated
	// as the propagation says.
	//
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	Dependents []DependentRule `json:"dependents,omitempty"`
}

// DependentAction is what becomes of a dependent.
//
// +kubebuilder:validation:Enum=Delete;Orphan
type DependentAction string

// The actions on dependents.
const (
	// DeleteDependent deletes the dependent with its owner.
	DeleteDependent DependentAction = "Delete"
	// OrphanDependent keeps the dependent, and removes its reference to the owner.
	OrphanDependent DependentAction = "Orphan"
)

// DependentRule says what becomes of dependents of some kinds.
type DependentRule struct {
	ResourceRule `json:",inline"`

	// action is Delete, or Orphan: keep the dependent and remove its reference to the deleted owner.
	//
	// +required
	Action DependentAction `json:"action"`
}

// Confirmation is how a delete is confirmed.
//
// +kubebuilder:validation:Enum=None;Required
type Confirmation string

// The confirmations.
const (
	// ConfirmationNone asks for no confirmation.
	ConfirmationNone Confirmation = "None"
	// ConfirmationRequired does not accept a delete that is not confirmed.
	ConfirmationRequired Confirmation = "Required"
)

// InCascades is what becomes of protected objects that collectors delete.
//
// +kubebuilder:validation:Enum=Refuse;Ignore
type InCascades string

// What becomes of them.
const (
	// InCascadesRefuse judges their delete whoever asks for it.
	InCascadesRefuse InCascades = "Refuse"
	// InCascadesIgnore lets the collectors delete them.
	InCascadesIgnore InCascades = "Ignore"
)

// GuardSelection is what becomes of updates that take objects out of what protects them.
//
// +kubebuilder:validation:Enum=Refuse;Ignore
type GuardSelection string

// What becomes of them.
const (
	// GuardSelectionRefuse judges them as the delete of the object.
	GuardSelectionRefuse GuardSelection = "Refuse"
	// GuardSelectionIgnore lets them pass.
	GuardSelectionIgnore GuardSelection = "Ignore"
)

// Protection refuses deletions that are likely mistakes.
//
// +kubebuilder:validation:XValidation:rule="!has(self.guardSelection) || self.guardSelection != 'Refuse' || (has(self.confirmation) && self.confirmation == 'Required')",message="guardSelection Refuse needs confirmation Required: an update can only be confirmed"
// +kubebuilder:validation:XValidation:rule="has(self.maxDependents) || (has(self.confirmation) && self.confirmation == 'Required')",message="set maxDependents, or confirmation to Required, or both"
type Protection struct {
	// maxDependents rejects deletes by which more than so many objects would also be deleted:
	// dependents and theirs; the objects of a CustomResourceDefinition; what is in a Namespace;
	// what depends on these. 0 means: while there is any. Orphaned objects are not counted. Left
	// out, there is no limit.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	MaxDependents *int32 `json:"maxDependents,omitempty"`

	// confirmation says whether a delete has to be confirmed. Required accepts a delete only where the object carries the
	// annotation weir.dev/confirm-delete with its own uid as value. With maxDependents, only a delete by which more than so many
	// objects would also be deleted has to be confirmed, and a confirmed one is accepted. Left out, it is None.
	//
	// +optional
	Confirmation Confirmation `json:"confirmation,omitempty"`

	// inCascades says whether the collectors are judged, too, when they delete a protected object
	// because of its owner, or with its namespace. Refuse refuses their delete as it would any
	// other: an object that is not confirmed stays, and Weir releases it from its owners, which are
	// gone. The delete of a Namespace, or of a CustomResourceDefinition, that holds such objects is
	// refused at once. So is the delete of another owner in their namespace, where that is found
	// out quickly; the delete of a cluster-scoped owner is warned of. For this the API server asks
	// Weir about every delete in the namespaces that the policy selects, and of every
	// cluster-scoped object, with failurePolicy Ignore; and about what the collectors delete of the
	// policy's objects, with the failurePolicy of the policy. Ignore leaves all that alone. Left
	// out, it is Refuse where Confirmation is Required, and Ignore otherwise.
	//
	// +optional
	InCascades InCascades `json:"inCascades,omitempty"`

	// guardSelection says whether an update is judged, too, by which the policy would no longer be
	// about the object, so that it could be deleted without confirmation: a label that objectSelector
	// selects by is changed, or of a Namespace one of namespaceSelector, or what conditions find in
	// metadata. Refuse refuses it unless the delete of the object is confirmed, with maxDependents
	// whatever would also be deleted. Conditions that look further than metadata do not count. Ignore
	// lets it pass. Left out, it is Refuse where Confirmation is Required, and Ignore otherwise.
	//
	// +optional
	GuardSelection GuardSelection `json:"guardSelection,omitempty"`
}

// Brake holds a deletion by which more than a limit would also be deleted, whichever client asked for it, also while the webhook was down. The object
// stays, terminating, and nothing is deleted because of it before a person has decided: see HeldCollection. Of several policies that match
// the lowest limit applies. It applies where propagation applies, and not in a namespace that is being deleted.
type Brake struct {
	// maxObjects is how many objects may be deleted because of the deletion, the deleted one not counted: dependents and theirs. A deletion by
	// which more would be deleted is held. 0 holds a deletion by which any would be. Orphaned objects are not counted.
	//
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	MaxObjects int32 `json:"maxObjects"`
}

// DeletionPolicyStatus is what the controller has made of a DeletionPolicy.
type DeletionPolicyStatus struct {
	PolicyStatus `json:",inline"`

	// stamped is how many of the matched objects carry Weir's finalizer. Left out, they have not been
	// counted yet, or are not, as matched says.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	Stamped *int64 `json:"stamped,omitempty"`
}

// DeletionPolicyList is a list of DeletionPolicy.
//
// +kubebuilder:object:root=true
type DeletionPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []DeletionPolicy `json:"items"`
}
