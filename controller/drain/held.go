package drain

import (
	"fmt"
	"strings"

	"github.com/weir-dev/weir/controller/words"
)

// mostNamed is how many finalizers of an object are named. An object can have thousands.
const mostNamed = 3

// waitingFor returns what is left of a kind, and who holds it.
func waitingFor(k Kind) string {
	s := fmt.Sprintf("%d %s", k.Total, k.Kind)
	if k.Terminating > 0 {
		s += fmt.Sprintf(" (%d terminating)", k.Terminating)
	}
	if k.Refused != "" {
		s += ": " + k.Refused
	}
	if o := k.First; o != nil {
		if held := o.held(); held != "" {
			s += fmt.Sprintf(": %s %s/%s %s", k.Kind, o.Namespace, o.Name, held)
		}
	}
	return s
}

// held returns what keeps an object, and who is expected to end that; empty if the API server has
// not accepted its deletion yet.
func (o *Object) held() string {
	switch {
	case !o.Terminating:
		return ""
	case len(o.Finalizers) == 0:
		return "has no finalizers and is shutting down"
	}
	var held []string
	for _, f := range o.Finalizers[:min(len(o.Finalizers), mostNamed)] {
		held = append(held, fmt.Sprintf("is held by finalizer %s: %s", f, expected(f)))
	}
	if more := len(o.Finalizers) - mostNamed; more > 0 {
		held = append(held, "by "+words.Count(more, "more finalizer", "more finalizers"))
	}
	return strings.Join(held, ", and ")
}

// expected returns who should remove a finalizer. Its name is qualified by the domain of its owner,
// except for some old names of Kubernetes.
func expected(finalizer string) string {
	domain, _, qualified := strings.Cut(finalizer, "/")
	switch {
	case finalizer == "foregroundDeletion" || finalizer == "orphan":
		return "the garbage collector is expected to remove it"
	case !qualified:
		return "its name does not say who is expected to remove it"
	case domain == "kubernetes.io" || strings.HasSuffix(domain, ".kubernetes.io"):
		return "Kubernetes is expected to remove it"
	case domain == "weir.dev":
		return "weir is expected to remove it"
	}
	return fmt.Sprintf("the controller of %s is expected to remove it", domain)
}

// Refusals collects why objects of one kind could not be deleted. The zero value is empty.
type Refusals struct {
	objects int
	text    string // the first in the order of texts
}

// Add adds why an object could not be deleted.
func (r *Refusals) Add(text string) {
	text = words.Cut(text, MostReason)
	if r.objects++; r.objects == 1 || text < r.text {
		r.text = text
	}
}

// String returns one of the reasons, and how many objects have it or another; empty if there are
// none. The text does not depend on the order in which they were added.
func (r *Refusals) String() string {
	if r.objects > 1 {
		return fmt.Sprintf("%s (and %d more refused)", r.text, r.objects-1)
	}
	return r.text
}
