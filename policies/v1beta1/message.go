package v1beta1

// PolicyMessage is what a policy says itself, beside what Weir says of a request.
type PolicyMessage struct {
	// message is told with each refusal and warning of the policy, after what Weir says: where the
	// runbook is, or whom to ask. Left out, nothing is added.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^[^\r\n]*[^\s][^\r\n]*$`
	Message string `json:"message,omitempty"`

	// messageExpression is CEL that yields a text to tell in place of message. It has the variables
	// of conditions, and may quote the object to whoever is refused. If it fails, or yields nothing,
	// several lines or more than 1024 bytes, message is told. Left out, message is.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	MessageExpression string `json:"messageExpression,omitempty"`
}
