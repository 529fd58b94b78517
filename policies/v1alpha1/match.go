package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Match says which objects a policy is about: those that pass all of its parts.
type Match struct {
	// resources are the kinds that the policy is about, in any version. An object passes if one of the entries names it.
	// Webhook configurations and admission policies cannot be named: the API server asks no webhook about them. A
	// ValidatingAdmissionPolicy can guard webhook configurations.
	//
	// +required
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:XValidation:rule="!self.exists(r, 'admissionregistration.k8s.io' in r.apiGroups)",message="the API server asks no webhook about webhook configurations and admission policies, so no policy of Weir holds for them: a ValidatingAdmissionPolicy can guard webhook configurations"
	// +listType=atomic
	Resources []ResourceRule `json:"resources"`

	// excludeResources are kinds that the policy is not about although resources name them; '*' is every one of the groups.
	// Left out, none is.
	//
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	ExcludeResources []ResourceRule `json:"excludeResources,omitempty"`

	// resourceNames are the names of the objects that the policy is about. Left out, those of any name.
	//
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=set
	ResourceNames []string `json:"resourceNames,omitempty"`

	// scope is Cluster for objects that are in no namespace (a Namespace is in none), Namespaced for those that are in one,
	// and * for both. Left out, it is *.
	//
	// +optional
	Scope Scope `json:"scope,omitempty"`

	// kubernetesControllers says whether the policy judges requests of Kubernetes' own controllers and their like: the service
	// accounts of kube-system, the scheduler, the cloud controller manager, and the API server itself. With Exclude they
	// are not. With Judge a DeletionPolicy may refuse a rollout, or the end of a Job, what its controller needs, for
	// ever. The collectors, kube-controller-manager where it uses one identity, nodes and Weir are never judged. Left out,
	// it is Exclude in a DeletionPolicy, and Judge in an OwnerReferencePolicy.
	//
	// +optional
	KubernetesControllers ControllerRule `json:"kubernetesControllers,omitempty"`

	// excludeUsers are the names of users whose requests are not judged. Left out, there are none.
	//
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=512
	// +listType=set
	ExcludeUsers []string `json:"excludeUsers,omitempty"`

	// excludeGroups are groups of users whose requests are not judged. Left out, there are none.
	//
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=512
	// +listType=set
	ExcludeGroups []string `json:"excludeGroups,omitempty"`

	// excludeServiceAccounts are service accounts whose requests are not judged: NAMESPACE/NAME, or NAMESPACE/* for all of a
	// namespace. Left out, there are none.
	//
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=317
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?/(\*|[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)$`
	// +listType=set
	ExcludeServiceAccounts []string `json:"excludeServiceAccounts,omitempty"`

	// namespaceSelector selects by the labels of the namespace an object is in; of a Namespace, by its own labels.
	// Other cluster-scoped objects always pass. Left out, every namespace passes.
	//
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`

	// objectSelector selects by the labels of the object; at an UPDATE, by its labels before or after. Left out,
	// every object passes.
	//
	// +optional
	ObjectSelector *metav1.LabelSelector `json:"objectSelector,omitempty"`

	// conditions are CEL expressions; an object passes if all of them are true. They see what the expressions of a
	// ValidatingAdmissionPolicy see: object (null at a DELETE), oldObject (null at a CREATE), request and
	// namespaceObject, within the same limits of cost. There are neither params nor an authorizer. Left out, every
	// object passes.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	Conditions []Condition `json:"conditions,omitempty"`
}

// Scope is whether objects are in a namespace; the words are those of ValidatingAdmissionPolicy.
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
	APIGroups []string `json:"apiGroups"`

	// resources are lower-case plural names, such as deployments, without a subresource. "*" is every resource of the
	// groups whose objects the API server keeps and lets be patched and deleted, but events, leases, Weir's own policies
	// and APIServices: to mean those, name them. Propagation never applies to them.
	//
	// +required
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:Pattern=`^(\*|[a-z0-9]([-a-z0-9]*[a-z0-9])?)$`
	// +listType=set
	Resources []string `json:"resources"`
}

// Condition is a named CEL expression.
type Condition struct {
	// name tells the conditions of a policy apart, in messages too.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`
	Name string `json:"name"`

	// expression is CEL and yields true or false.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Expression string `json:"expression"`
}

// ValidationAction is what happens when something is not as a policy asks; the words are those of
// ValidatingAdmissionPolicy.
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
