package insight

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/words"
	"github.com/weir-dev/weir/policies/v1alpha1"
)

// saying is what Weir's controller has said in an Event about an object that does not go.
type saying struct {
	object, reason, message string
	at                      time.Time
}

// saidOf are what was said about some objects, and about what is in a namespace, the last first. Who else writes Events as Weir is
// believed as little: it is evidence.
func saidOf(events []corev1.Event, about map[types.UID]bool, v *graph.View) (out []saying) {
	for i := range events {
		e := &events[i]
		on := &e.InvolvedObject
		if e.Source.Component != component || e.Reason != v1alpha1.ReasonCollectionRefused && e.Reason != v1alpha1.ReasonDeletionHeld ||
			!about[on.UID] && (v.Kind != namespaces || on.Namespace != v.Name) {
			continue
		}
		out = append(out, saying{named(on.Kind, on.Namespace, on.Name), e.Reason, words.Printable(e.Message), e.LastTimestamp.Time})
	}
	slices.SortStableFunc(out, func(a, b saying) int { return cmp.Or(b.at.Compare(a.at), cmp.Compare(a.object, b.object)) })
	return out
}

// named is an object by its kind, as owner references and Events name one.
func named(kind, namespace, name string) string {
	if namespace != "" {
		name = namespace + "/" + name
	}
	return words.Printable(kind + " " + name)
}
