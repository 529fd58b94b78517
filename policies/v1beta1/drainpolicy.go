package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// DrainPolicy sets the order in which the content of a deleted namespace is deleted. Of several
// policies that select a namespace the one with the highest priority applies, and among equals the
// first by name. Without one, pods are deleted first and then the rest.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=drainpol,categories=weir
// +kubebuilder:printcolumn:name="Waves",type=string,JSONPath=`.status.waves`,description="What goes first is named first"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether the policy holds"
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Matched",type=integer,JSONPath=`.status.matched`,priority=1
// +kubebuilder:printcolumn:name="Enforced",type=string,JSONPath=`.status.conditions[?(@.type=="Enforced")].status`,priority=1,description="Whether waves hold"
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
type DrainPolicy struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is that of every object.
	//
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the user asks for.
	//
	// +required
	Spec DrainPolicySpec `json:"spec,omitzero"`

	// status is what the controller has made of it.
	//
	// +optional
	Status DrainPolicyStatus `json:"status,omitempty"`
}

// DrainPolicyStatus is what the controller has made of a DrainPolicy.
type DrainPolicyStatus struct {
	PolicyStatus `json:",inline"`

	// waves are the names of the waves in order, for kubectl get.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	Waves string `json:"waves,omitempty"`
}

// DrainPolicySpec is what the user asks for.
type DrainPolicySpec struct {
	// namespaceSelector selects namespaces by their labels. Left out, all.
	//
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`

	// priority decides whose waves apply if several policies select a namespace: the highest wins,
	// and among equals the first by name.
	//
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=-1000000
	// +kubebuilder:validation:Maximum=1000000
	Priority *int32 `json:"priority,omitempty"`

	// waves are deleted one after the other. An object belongs to the first wave that names it, or
	// else to the last.
	//
	// +required
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	Waves []Wave `json:"waves,omitempty"`
}

// Wave is what goes at the same time.
//
// +kubebuilder:validation:XValidation:rule="!has(self.onTimeout) || self.onTimeout == 'Wait' || has(self.timeoutSeconds)",message="onTimeout Proceed needs timeoutSeconds: without it the wave waits for ever"
type Wave struct {
	// name identifies the wave, in the namespace's conditions too.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name,omitempty"`

	// resources are what goes in this wave.
	//
	// +required
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	Resources []ResourceRule `json:"resources,omitempty"`

	// objectSelector selects objects by their labels; others belong to later waves. Left out, all.
	//
	// +optional
	ObjectSelector *metav1.LabelSelector `json:"objectSelector,omitempty"`

	// timeoutSeconds is how long the wave may take before onTimeout applies, at most a day. Left
	// out, there is no limit.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=86400
	TimeoutSeconds int32 `json:"timeoutSeconds,omitempty"`

	// onTimeout is what happens after timeoutSeconds: Wait waits on and says so in the namespace's
	// conditions, Proceed begins the next wave.
	//
	// +optional
	// +kubebuilder:default=Wait
	OnTimeout OnTimeout `json:"onTimeout,omitempty"`
}

// OnTimeout is what happens to a wave that takes too long.
//
// +kubebuilder:validation:Enum=Wait;Proceed
type OnTimeout string

// What happens to a wave that takes too long.
const (
	// Wait waits on, and says so in the conditions of the namespace.
	Wait OnTimeout = "Wait"
	// Proceed begins the next wave.
	Proceed OnTimeout = "Proceed"
)

// DrainPolicyList is a list of DrainPolicy.
//
// +kubebuilder:object:root=true
type DrainPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []DrainPolicy `json:"items"`
}
