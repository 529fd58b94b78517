package brake

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/policies/v1alpha1"
)

// cause is what a HeldCollection is about: what is inferred about the owners of a kind, what
// follows from references that one writer has edited, or deletions of a kind that were asked for.
type cause struct {
	kind      schema.GroupResource
	requested bool
	writer    string
}

// causeFor is what the HeldCollection of inferences is about.
func causeFor(c graph.Cause) cause { return cause{kind: c.Owners, writer: c.Writer} }

// key is by what the Ledger counts it.
func (c cause) key() graph.Cause { return graph.Cause{Owners: c.kind, Writer: c.writer} }

// String is the name of the HeldCollection.
func (c cause) String() string {
	switch {
	case c.requested:
		return v1alpha1.HeldRequested + c.kind.String()
	case c.writer != "":
		return v1alpha1.HeldWrittenBy + label(c.writer)
	}
	return c.kind.String()
}

// mostLabel is how much of a writer's own name is in that of a HeldCollection.
const mostLabel = 63

// summed is how the label of a writer ends whose own name is none.
var summed = regexp.MustCompile(`(^|-)[0-9a-f]{8}$`)

// label is a writer as a part of an object's name, which no other writer has. It has no dots: so no
// kind has that name.
func label(writer string) string {
	clean := strings.Trim(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(writer)), "-")
	if clean == writer && len(clean) <= mostLabel && !summed.MatchString(clean) {
		return clean
	}
	sum := sha256.Sum256([]byte(writer))
	return strings.Trim(clean[:min(len(clean), mostLabel-9)]+"-"+hex.EncodeToString(sum[:4]), "-")
}

// causeOf is what a HeldCollection is about.
func causeOf(h *v1alpha1.HeldCollection) cause {
	switch {
	case h.Status.Writer != "":
		return cause{writer: h.Status.Writer}
	case h.Status.Conclusion == v1alpha1.HeldBecauseRequested:
		return cause{kind: schema.ParseGroupResource(strings.TrimPrefix(h.Name, v1alpha1.HeldRequested)), requested: true}
	}
	return cause{kind: schema.ParseGroupResource(h.Name)}
}
