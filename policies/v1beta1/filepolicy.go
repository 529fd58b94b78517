package v1beta1

const (
	// FilePolicies is the name of the ConfigMap in Weir's namespace in which the controller shows the
	// policies that are files, for kubectl weir. What is written there changes no decision of Weir.
	FilePolicies = "weir-file-policies"
	// FilePoliciesKey is where they are in it: a list of FilePolicy, as JSON.
	FilePoliciesKey = "policies"
)

// FilePolicy is a policy in short, and its status. It is no API object.
//
// +kubebuilder:object:generate=false
type FilePolicy struct {
	Kind   string               `json:"kind"`
	Name   string               `json:"name"`
	File   string               `json:"file,omitempty"`
	Spec   map[string]any       `json:"spec,omitempty"`
	Status DeletionPolicyStatus `json:"status"`
}
