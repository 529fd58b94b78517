package brake

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/policies/v1beta1"
)

// cause is what a HeldCollection is about: what is inferred about the owners of a kind, or
// deletions of a kind that were asked for.
type cause struct {
	kind      schema.GroupResource
	requested bool
}

// String is the name of the HeldCollection.
func (c cause) String() string {
	if c.requested {
		return v1beta1.HeldRequested + c.kind.String()
	}
	return c.kind.String()
}

// causeOf is what a HeldCollection is about.
func causeOf(h *v1beta1.HeldCollection) cause {
	name := h.Name
	requested := h.Status.Conclusion == v1beta1.HeldBecauseRequested
	if requested {
		name = strings.TrimPrefix(name, v1beta1.HeldRequested)
	}
	return cause{schema.ParseGroupResource(name), requested}
}
