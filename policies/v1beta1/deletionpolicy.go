package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// DeletionPolicy says how the objects that it matches may be deleted, and how the deletion is
// carried out.
//
// If several policies match an object, the protection and the brake of each of them apply. Only one
// propagation applies: that of the policy with the highest priority, or among equals, that of the
// first by name.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=delpol,categories=weir
// +kubebuilder:printcolumn:name="Default",type=string,JSONPath=`.spec.propagation.default`,description="How a delete that asks for nothing, or for Background, is carried out"
// +kubebuilder:printcolumn:name="Actions",type=string,JSONPath=`.spec.validationActions`,description="What happens to a delete that the policy does not accept"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether the policy holds"
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Priority",type=integer,JSONPath=`.spec.priority`,priority=1
// +kubebuilder:printcolumn:name="Matched",type=integer,JSONPath=`.status.matched`,priority=1
// +kubebuilder:printcolumn:name="Finalizer",type=integer,JSONPath=`.status.withFinalizer`,priority=1
// +kubebuilder:printcolumn:name="Enforced",type=string,JSONPath=`.status.conditions[?(@.type=="Enforced")].status`,priority=1,description="Whether the API server asks Weir about what the policy may be about"
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
type DeletionPolicy struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is that of every object.
	//
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the user asks for.
	//
	// +required
	Spec DeletionPolicySpec `json:"spec,omitzero"`

	// status is what the controller has made of it.
	//
	// +optional
	Status DeletionPolicyStatus `json:"status,omitempty"`
}

// DeletionPolicySpec is what the user asks for.
//
// +kubebuilder:validation:XValidation:rule="has(self.propagation) || has(self.protection) || has(self.brake) || has(self.archive)",message="set propagation, protection, brake or archive: a policy without any asks for nothing"
// +kubebuilder:validation:XValidation:rule="!(has(self.match.users) || has(self.match.groups) || has(self.match.serviceAccounts)) || !has(self.brake) && !has(self.archive) && (!has(self.propagation) || !has(self.propagation.default) && !has(self.propagation.dependents) && (!has(self.propagation.annotation) || self.propagation.annotation != 'Allow'))",message="a policy for some users can have protection and propagation.allowed: what brake, archive and the rest of propagation do is prepared on the object, before anyone asks to delete it"
type DeletionPolicySpec struct {
	// match says which objects the policy matches. Its conditions are always evaluated as for the
	// DELETE of the object: object is null, oldObject is the object.
	//
	// +required
	Match Match `json:"match,omitzero"`

	// priority decides whose propagation applies if several policies match: the highest wins, and
	// among equals the first by name.
	//
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=-1000000
	// +kubebuilder:validation:Maximum=1000000
	Priority *int32 `json:"priority,omitempty"`

	// propagation is how a deletion is carried out. Left out, as Kubernetes does it.
	//
	// +optional
	Propagation *Propagation `json:"propagation,omitempty"`

	// protection refuses deletions that are likely mistakes. Left out, none.
	//
	// +optional
	Protection *Protection `json:"protection,omitempty"`

	// brake holds large deletions until a person decides. Left out, none.
	//
	// +optional
	Brake Brake `json:"brake,omitzero"`

	// archive records the object, and all that is deleted with it, so that it can be brought back.
	// Left out, nothing is recorded.
	//
	// +optional
	Archive *Archive `json:"archive,omitempty"`

	// validationActions are what happens to a delete that protection or propagation.allowed
	// rejects: Deny refuses it, Warn warns the client, Audit adds an audit annotation. Without Deny
	// the policy is on trial: it refuses and changes nothing, and says what it would do.
	//
	// +optional
	// +kubebuilder:default={Deny}
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:validation:XValidation:rule="!('Deny' in self && 'Warn' in self)",message="Deny and Warn cannot be used together: a refusal already says what a warning would"
	// +listType=set
	ValidationActions []ValidationAction `json:"validationActions,omitempty"`

	// failurePolicy is what happens to a delete while the policy cannot be judged: Weir's webhook
	// does not answer, the policy is broken, or a condition fails. Ignore lets it pass, Fail
	// refuses it. Fail does not hold in Weir's own namespace, nor in kube-system and
	// kube-node-lease unless namespaceSelector selects these by kubernetes.io/metadata.name.
	// Creates and updates do not depend on it, except the updates that guardSelection or
	// propagation.annotation judges.
	//
	// +optional
	// +kubebuilder:default=Ignore
	FailurePolicy FailurePolicy `json:"failurePolicy,omitempty"`

	PolicyMessage `json:",inline"`
}

// PropagationPolicy is what becomes of dependents, as in DeleteOptions.
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

// Propagation is how a deletion is carried out. It does not apply to pods, namespaces, nodes,
// csinodes, roles and their bindings.
//
// +kubebuilder:validation:XValidation:rule="has(self.default) || has(self.allowed) || has(self.dependents) || has(self.annotation) && self.annotation == 'Allow'",message="set at least one of default, allowed and dependents, or annotation to Allow"
// +kubebuilder:validation:XValidation:rule="!has(self.default) || !has(self.allowed) || self.default in self.allowed",message="allowed must contain default: a delete that asks for nothing would be refused"
type Propagation struct {
	// default is the propagation of deletes that ask for Background, or for nothing: kubectl asks
	// for Background by itself. Left out, a delete has the propagation that it asks for.
	//
	// +optional
	Default PropagationPolicy `json:"default,omitempty"`

	// allowed are the propagation policies that a delete may ask for. Left out, all.
	//
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=3
	// +listType=set
	Allowed []PropagationPolicy `json:"allowed,omitempty"`

	// dependents say which kinds of direct dependents are kept or deleted; the first entry that
	// names the kind applies. They hold in Background and Foreground. Left out, dependents are
	// treated as the propagation says.
	//
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	Dependents []DependentRule `json:"dependents,omitempty"`

	// annotation says whether an object can choose how it is deleted. With Allow, its annotation
	// weir.dev/propagation (Background, Foreground or Orphan) replaces default, and a delete that
	// asks for another propagation is refused. Only users who may delete the object can change the
	// annotation. A value that allowed does not contain has no effect. With Ignore, the annotation
	// is not read.
	//
	// +optional
	// +kubebuilder:default=Ignore
	Annotation AnnotationRule `json:"annotation,omitempty"`
}

// AnnotationRule is whether objects say how they are deleted.
//
// +kubebuilder:validation:Enum=Allow;Ignore
type AnnotationRule string

// Whether they do.
const (
	// AllowAnnotation has their annotation say it.
	AllowAnnotation AnnotationRule = "Allow"
	// IgnoreAnnotation does not read it.
	IgnoreAnnotation AnnotationRule = "Ignore"
)

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

	// action is Delete, or Orphan: keep the dependent and remove its reference to the owner.
	//
	// +required
	Action DependentAction `json:"action,omitempty"`
}

// Confirmation is how a delete is confirmed.
//
// +kubebuilder:validation:Enum=None;Required;SecondPerson
type Confirmation string

// The confirmations.
const (
	// ConfirmationNone asks for no confirmation.
	ConfirmationNone Confirmation = "None"
	// ConfirmationRequired does not accept a delete that is not confirmed.
	ConfirmationRequired Confirmation = "Required"
	// ConfirmationSecondPerson does not accept one that no other person has confirmed.
	ConfirmationSecondPerson Confirmation = "SecondPerson"
)

// Asked tells whether a delete has to be confirmed.
func (c Confirmation) Asked() bool { return c == ConfirmationRequired || c == ConfirmationSecondPerson }

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

// ProtectedRequest is a way to delete an object.
//
// +kubebuilder:validation:Enum=Delete;Evict
type ProtectedRequest string

// The ways.
const (
	// ProtectDelete is a DELETE of the object.
	ProtectDelete ProtectedRequest = "Delete"
	// ProtectEvict is the eviction of a pod.
	ProtectEvict ProtectedRequest = "Evict"
)

// Protection refuses deletions that are likely mistakes.
//
// +kubebuilder:validation:XValidation:rule="has(self.maxDependents) || (has(self.confirmation) && self.confirmation != 'None')",message="set maxDependents, or confirmation to Required or SecondPerson, or both"
// +kubebuilder:validation:XValidation:rule="!has(self.confirmationValidForSeconds) || (has(self.confirmation) && self.confirmation != 'None')",message="confirmationValidForSeconds needs confirmation Required or SecondPerson"
type Protection struct {
	// requests are what is judged: Delete, and Evict, the eviction of pods. Without Delete, whoever
	// may delete a pod may do so, and collectors may.
	//
	// +optional
	// +kubebuilder:default={Delete,Evict}
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	// +listType=set
	Requests []ProtectedRequest `json:"requests,omitempty"`

	// maxDependents refuses deletes that would also delete more than this many objects: dependents
	// and theirs, the objects of a CustomResourceDefinition, the content of a Namespace. 0 allows
	// none. Orphaned objects do not count. Left out, there is no limit.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	MaxDependents *int32 `json:"maxDependents,omitempty"`

	// confirmation Required refuses a delete unless the object has the annotation
	// weir.dev/confirm-delete with its own uid, written while Weir's webhook saw who did.
	// SecondPerson also refuses a delete by the user who confirmed it, a confirmation by a service
	// account, and a delete by a collector, except by one that empties a namespace. With
	// maxDependents, only deletes of more objects than that need a confirmation. Left out, it is
	// None.
	//
	// +optional
	Confirmation Confirmation `json:"confirmation,omitempty"`

	// confirmationValidForSeconds is how long a confirmation holds. Left out, an hour.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=604800
	ConfirmationValidForSeconds int32 `json:"confirmationValidForSeconds,omitempty"`

	// inCascades says whether collectors are judged, too, when they delete a protected object with
	// its owner or its namespace. Refuse refuses them: the object stays and loses its owners. The
	// delete of a Namespace or CustomResourceDefinition that holds such objects is refused at once,
	// and that of another owner where the answer is cheap. A policy for some users does not
	// judge collectors: they do not say for whom they delete.
	//
	// +optional
	// +kubebuilder:default=Refuse
	InCascades InCascades `json:"inCascades,omitempty"`

	// guardSelection Refuse also refuses updates that take the object out of the policy, by a label
	// that its selectors use or by metadata that its conditions look at, unless the delete of the
	// object is confirmed. Where confirmation is not Required it has no effect: an update can only
	// be confirmed.
	//
	// +optional
	// +kubebuilder:default=Refuse
	GuardSelection GuardSelection `json:"guardSelection,omitempty"`
}

// Brake holds a deletion that would also delete more objects than a limit, whoever asked for it.
// The object stays, terminating, until a person has decided: see HeldCollection. It applies where
// propagation applies, and not in a namespace that is being deleted.
type Brake struct {
	// maxObjects is how many objects may be deleted with the object, dependents and theirs. More
	// are held. Orphaned objects do not count.
	//
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	MaxObjects *int32 `json:"maxObjects,omitempty"`
}

// DeletionPolicyStatus is what the controller has made of a DeletionPolicy.
type DeletionPolicyStatus struct {
	PolicyStatus `json:",inline"`

	// withFinalizer is how many of the matched objects carry Weir's finalizer.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	WithFinalizer *int64 `json:"withFinalizer,omitempty"`
}

// DeletionPolicyList is a list of DeletionPolicy.
//
// +kubebuilder:object:root=true
type DeletionPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []DeletionPolicy `json:"items"`
}
