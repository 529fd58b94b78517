package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Match says which objects a policy matches: those that pass all of its parts.
type Match struct {
	// resources are the kinds that the policy matches, in any version. Webhook configurations and
	// admission policies cannot be named: the API server asks no webhook about them.
	//
	// +required
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:XValidation:rule="!self.exists(r, 'admissionregistration.k8s.io' in r.apiGroups)",message="the API server asks no webhook about webhook configurations and admission policies, so no policy of Weir holds for them: a ValidatingAdmissionPolicy can guard webhook configurations"
	// +listType=atomic
	Resources []ResourceRule `json:"resources,omitempty"`

	// excludeResources are exceptions from resources; '*' is every resource of the groups. Left
	// out, none.
	//
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	ExcludeResources []ResourceRule `json:"excludeResources,omitempty"`

	// resourceNames are the names of the objects that the policy matches. Left out, any.
	//
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=set
	ResourceNames []string `json:"resourceNames,omitempty"`

	// scope is Cluster for cluster-scoped objects (Namespaces, too), Namespaced for objects in a
	// namespace, and * for both.
	//
	// +optional
	// +kubebuilder:default="*"
	Scope Scope `json:"scope,omitempty"`

	// kubernetesControllers says whether the policy judges Kubernetes' own controllers: the service
	// accounts of kube-system, the scheduler, the cloud controller manager and the API server. With
	// Judge, a DeletionPolicy may block a rollout forever. Collectors are another matter, which
	// protection.inCascades decides.
	//
	// +optional
	// +kubebuilder:default=Exclude
	KubernetesControllers ControllerRule `json:"kubernetesControllers,omitempty"`

	// users are those whose requests are judged, with groups and serviceAccounts: of one of these a
	// request has to be. With all three left out, everyone's are. A DeletionPolicy for some has no
	// brake, propagation.default or propagation.dependents, and does not judge collectors.
	//
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=512
	// +listType=set
	Users []string `json:"users,omitempty"`

	// groups are groups of users whose requests are judged. Left out, see users.
	//
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=512
	// +listType=set
	Groups []string `json:"groups,omitempty"`

	// serviceAccounts are service accounts whose requests are judged: NAMESPACE/NAME, or
	// NAMESPACE/*. Left out, see users.
	//
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=317
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?/(\*|[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)$`
	// +listType=set
	ServiceAccounts []string `json:"serviceAccounts,omitempty"`

	// excludeUsers are users whose requests are not judged. Left out, none.
	//
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=512
	// +listType=set
	ExcludeUsers []string `json:"excludeUsers,omitempty"`

	// excludeGroups are groups of users whose requests are not judged. Left out, none.
	//
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=512
	// +listType=set
	ExcludeGroups []string `json:"excludeGroups,omitempty"`

	// excludeServiceAccounts are service accounts whose requests are not judged: NAMESPACE/NAME, or
	// NAMESPACE/*. Left out, none.
	//
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=317
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?/(\*|[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)$`
	// +listType=set
	ExcludeServiceAccounts []string `json:"excludeServiceAccounts,omitempty"`

	// namespaceSelector selects by the labels of the object's namespace, or of a Namespace itself.
	// Other cluster-scoped objects always pass. Left out, every namespace passes.
	//
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`

	// objectSelector selects by the labels of the object; at an UPDATE, before or after. Left out,
	// every object passes.
	//
	// +optional
	ObjectSelector *metav1.LabelSelector `json:"objectSelector,omitempty"`

	// matchConditions are CEL expressions that must all be true. They have the variables and cost limits
	// of ValidatingAdmissionPolicy, without params and authorizer. Left out, every object passes.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	MatchConditions []MatchCondition `json:"matchConditions,omitempty"`
}

// Scope is whether objects are in a namespace, as in ValidatingAdmissionPolicy.
//
// +kubebuilder:validation:Enum=Cluster;Namespaced;*
type Scope string

// The scopes.
const (
	// ClusterScope is objects that are in no namespace.
	ClusterScope Scope = "Cluster"
	// NamespacedScope is objects that are in a namespace.
	NamespacedScope Scope = "Namespaced"
	// AllScopes is both.
	AllScopes Scope = "*"
)

// ControllerRule is what is done about requests of Kubernetes' own controllers.
//
// +kubebuilder:validation:Enum=Exclude;Judge
type ControllerRule string

// What is done about requests of Kubernetes' own controllers.
const (
	// ExcludeControllers does not judge them.
	ExcludeControllers ControllerRule = "Exclude"
	// JudgeControllers judges them as those of anyone else.
	JudgeControllers ControllerRule = "Judge"
)

// ResourceRule names resources of API groups.
//
// +kubebuilder:validation:XValidation:rule="!('*' in self.apiGroups) || size(self.apiGroups) == 1",message="'*' stands for every API group: name it alone"
// +kubebuilder:validation:XValidation:rule="!('*' in self.resources) || size(self.resources) == 1",message="'*' stands for every resource: name it alone"
type ResourceRule struct {
	// apiGroups are API groups; "" is the core group, and "*" is every group.
	//
	// +required
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:Pattern=`^(\*|([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?)$`
	// +listType=set
	APIGroups []string `json:"apiGroups,omitempty"`

	// resources are lower-case plural names. "*" is every resource of the groups that can be
	// patched and deleted, except those that a policy about everything never means: events, leases,
	// componentstatuses and bindings, and the groups weir.dev, admissionregistration.k8s.io,
	// apiregistration.k8s.io, authentication.k8s.io and authorization.k8s.io. They have to be named.
	// Propagation never applies to them.
	//
	// +required
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:Pattern=`^(\*|[a-z0-9]([-a-z0-9]*[a-z0-9])?)$`
	// +listType=set
	Resources []string `json:"resources,omitempty"`
}

// MatchCondition is a named CEL expression.
type MatchCondition struct {
	// name identifies the condition, in messages too.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`
	Name string `json:"name,omitempty"`

	// expression is CEL and yields true or false.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Expression string `json:"expression,omitempty"`
}

// ValidationAction is what happens to what a policy rejects, as in ValidatingAdmissionPolicy.
//
// +kubebuilder:validation:Enum=Deny;Warn;Audit
type ValidationAction string

// The validation actions.
const (
	// Deny refuses the request.
	Deny ValidationAction = "Deny"
	// Warn lets it pass, with a warning to the client.
	Warn ValidationAction = "Warn"
	// Audit lets it pass, with an audit annotation.
	Audit ValidationAction = "Audit"
)

// FailurePolicy is what happens when a policy cannot be judged.
//
// +kubebuilder:validation:Enum=Ignore;Fail
type FailurePolicy string

// The failure policies.
const (
	// Ignore lets the request pass.
	Ignore FailurePolicy = "Ignore"
	// Fail refuses the request.
	Fail FailurePolicy = "Fail"
)
