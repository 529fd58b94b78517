package brake

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/policies/v1beta1"
)

// cause is what a HeldCollection is about: inference about the owners of a kind, or requested
// deletions of a kind.
type cause struct {
	kind      schema.GroupResource
	requested bool
}

// String returns the name of the HeldCollection.
func (c cause) String() string {
	if c.requested {
		return v1beta1.HeldRequested + c.kind.String()
	}
	return c.kind.String()
}

// causeOf returns what a HeldCollection is about.
func causeOf(h *v1beta1.HeldCollection) cause {
	if c := h.Status.Cause; c.Resource != "" {
		return cause{schema.GroupResource{Group: c.Group, Resource: c.Resource}, c.Type == v1beta1.HeldForRequest}
	}
	return cause{kind: schema.ParseGroupResource(h.Name)} // the status does not say: in doubt more is held
}
