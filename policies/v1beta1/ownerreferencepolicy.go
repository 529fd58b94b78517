package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// OwnerReferencePolicy says which owner references may be written on the objects that it matches.
// Only references that a request adds or changes are judged. All parts of all policies that match
// apply.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=ownpol,categories=weir
// +kubebuilder:printcolumn:name="Block",type=string,JSONPath=`.spec.blockOwnerDeletion`,description="What is asked of a reference that blocks its owner's deletion"
// +kubebuilder:printcolumn:name="Changes",type=string,JSONPath=`.spec.changes`,description="What is asked of who changes references"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether the policy holds"
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Matched",type=integer,JSONPath=`.status.matched`,priority=1
// +kubebuilder:printcolumn:name="Enforced",type=string,JSONPath=`.status.conditions[?(@.type=="Enforced")].status`,priority=1,description="Whether the API server asks Weir about what the policy may be about"
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
type OwnerReferencePolicy struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is that of every object.
	//
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the user asks for.
	//
	// +required
	Spec OwnerReferencePolicySpec `json:"spec,omitzero"`

	// status is what the controller has made of it.
	//
	// +optional
	Status PolicyStatus `json:"status,omitempty"`
}

// OwnerReferencePolicySpec is what the user asks for.
//
// +kubebuilder:validation:XValidation:rule="self.blockOwnerDeletion != 'Allow' || self.changes != 'Allow' || has(self.rules)",message="set blockOwnerDeletion, changes or rules: a policy without any asks for nothing"
type OwnerReferencePolicySpec struct {
	// match says which dependents the policy matches.
	//
	// +required
	Match Match `json:"match,omitzero"`

	// blockOwnerDeletion is about references that newly set blockOwnerDeletion, by which a
	// dependent holds up the deletion of its owner. RequirePermission asks for the permission to
	// update the owner's finalizers, as OwnerReferencesPermissionEnforcement does; Clear sets
	// blockOwnerDeletion to false.
	//
	// +optional
	// +kubebuilder:default=Allow
	BlockOwnerDeletion BlockOwnerDeletion `json:"blockOwnerDeletion,omitempty"`

	// changes is about updates that add, change or remove references. RequirePermission asks for
	// the permission to delete the dependent.
	//
	// +optional
	// +kubebuilder:default=Allow
	Changes Changes `json:"changes,omitempty"`

	// rules find references that are likely mistakes. Left out, none.
	//
	// +optional
	Rules *OwnerRules `json:"rules,omitempty"`

	// validationActions are what happens to what blockOwnerDeletion or changes rejects: Deny
	// refuses it, Warn warns the client, Audit adds an audit annotation. Without Deny they refuse
	// and clear nothing. Rules have actions of their own.
	//
	// +optional
	// +kubebuilder:default={Deny}
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:validation:XValidation:rule="!('Deny' in self && 'Warn' in self)",message="Deny and Warn cannot be used together: a refusal already says what a warning would"
	// +listType=set
	ValidationActions []ValidationAction `json:"validationActions,omitempty"`

	// failurePolicy is what happens to a request while the policy cannot be judged: Weir's webhook
	// does not answer, the policy is broken, or a condition fails. Ignore lets it pass, Fail
	// refuses it. Fail does not hold in Weir's own namespace, nor in kube-system and
	// kube-node-lease unless namespaceSelector selects these by kubernetes.io/metadata.name.
	//
	// +optional
	// +kubebuilder:default=Ignore
	FailurePolicy FailurePolicy `json:"failurePolicy,omitempty"`

	PolicyMessage `json:",inline"`
}

// BlockOwnerDeletion is what is asked of a reference that blocks its owner's deletion.
//
// +kubebuilder:validation:Enum=Allow;RequirePermission;Deny;Clear
type BlockOwnerDeletion string

// What is asked of a reference that blocks its owner's deletion.
const (
	// BlockAllow accepts them.
	BlockAllow BlockOwnerDeletion = "Allow"
	// BlockRequirePermission accepts them from users who may update the owner's finalizers.
	BlockRequirePermission BlockOwnerDeletion = "RequirePermission"
	// BlockDeny refuses them.
	BlockDeny BlockOwnerDeletion = "Deny"
	// BlockClear sets blockOwnerDeletion to false in them.
	BlockClear BlockOwnerDeletion = "Clear"
)

// Changes is what is asked of who changes references.
//
// +kubebuilder:validation:Enum=Allow;RequirePermission
type Changes string

// What is asked of who changes references.
const (
	// ChangesAllow accepts them.
	ChangesAllow Changes = "Allow"
	// ChangesRequirePermission accepts them from users who may delete the dependent.
	ChangesRequirePermission Changes = "RequirePermission"
)

// RuleAction is what happens when a rule finds something.
//
// +kubebuilder:validation:Enum=Ignore;Audit;Warn;Deny
type RuleAction string

// The rule actions.
const (
	// RuleIgnore does nothing.
	RuleIgnore RuleAction = "Ignore"
	// RuleAudit adds an audit annotation.
	RuleAudit RuleAction = "Audit"
	// RuleWarn warns the client.
	RuleWarn RuleAction = "Warn"
	// RuleDeny refuses the request.
	RuleDeny RuleAction = "Deny"
)

// OwnerRules find references that are likely mistakes. A rule finds nothing if the owner's kind
// cannot be read.
//
// +kubebuilder:validation:XValidation:rule="[self.dangling, self.mismatch, self.otherNamespace, self.namespacedOwner, self.manyControllers, self.manyOwners, self.unservedVersion, self.cycle].exists(r, r != 'Ignore')",message="set at least one rule to Audit, Warn or Deny"
type OwnerRules struct {
	// dangling finds owners that do not exist: no object has their uid. The collector would delete
	// the dependent.
	//
	// +optional
	// +kubebuilder:default=Ignore
	Dangling RuleAction `json:"dangling,omitempty"`

	// mismatch finds owners whose uid belongs to an object of another kind or name. The collector
	// would delete the dependent.
	//
	// +optional
	// +kubebuilder:default=Ignore
	Mismatch RuleAction `json:"mismatch,omitempty"`

	// otherNamespace finds owners in another namespace. The collector would delete the dependent.
	//
	// +optional
	// +kubebuilder:default=Ignore
	OtherNamespace RuleAction `json:"otherNamespace,omitempty"`

	// namespacedOwner finds cluster-scoped dependents of namespaced owners. Such an owner is never
	// found.
	//
	// +optional
	// +kubebuilder:default=Ignore
	NamespacedOwner RuleAction `json:"namespacedOwner,omitempty"`

	// manyControllers finds objects with more than one controller reference. The API server refuses
	// these, too.
	//
	// +optional
	// +kubebuilder:default=Ignore
	ManyControllers RuleAction `json:"manyControllers,omitempty"`

	// manyOwners finds objects with more than 64 owner references. Weir never collects an object
	// with more than 256.
	//
	// +optional
	// +kubebuilder:default=Ignore
	ManyOwners RuleAction `json:"manyOwners,omitempty"`

	// unservedVersion finds references in a version that the cluster does not serve. The dependent
	// would never be collected.
	//
	// +optional
	// +kubebuilder:default=Ignore
	UnservedVersion RuleAction `json:"unservedVersion,omitempty"`

	// cycle finds owners that depend on their dependent. Neither would ever be collected.
	//
	// +optional
	// +kubebuilder:default=Ignore
	Cycle RuleAction `json:"cycle,omitempty"`
}

// OwnerReferencePolicyList is a list of OwnerReferencePolicy.
//
// +kubebuilder:object:root=true
type OwnerReferencePolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []OwnerReferencePolicy `json:"items"`
}
