package beside

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/kinds"
)

// space is a namespace that is being deleted, and what the namespace controller has done about it, as far as that can be seen.
type space struct {
	since time.Time // its deletion
	seen  bool      // this process saw it, while it led
	// changed is when the namespace was last written, as a watch shows it, and read when it was last read.
	changed, read time.Time
	unread        bool // that failed: what was written until then is not known
	ref           graph.Ref

	begun time.Time // zero: the controller has not looked at it yet
	ended bool      // it has let the namespace go; others hold it
	// excused: it says that it cannot tell what is left, or may not delete it.
	excused bool

	emptied time.Time // zero: there is something in it, or that is not known
	// pods were in it: after these the controller looks again when half of their grace period is over, and not before.
	pods bool
}

// Steps of the namespace controller that it is waited for.
const (
	stepBegin = "begin"
	stepEnd   = "end"
)

// waits is for what the controller is waited for, and since when; "" if it is not.
func (s *space) waits() (step string, since time.Time) {
	switch {
	case s.ended, s.excused && !s.begun.IsZero():
		return "", time.Time{}
	case s.begun.IsZero():
		return stepBegin, s.since
	case s.emptied.IsZero():
		return "", time.Time{}
	case s.emptied.Before(s.begun):
		return stepEnd, s.begun
	}
	return stepEnd, s.emptied
}

// holds takes in what is in the namespace.
func (s *space) holds(now time.Time, content []graph.KindCount, complete bool) {
	s.pods = s.pods || slices.ContainsFunc(content, func(k graph.KindCount) bool { return k.Kind == podKind && k.Total > 0 })
	switch {
	case len(content) > 0 || !complete:
		s.emptied = time.Time{}
	case s.emptied.IsZero():
		s.emptied = now
	}
}

// tells takes in what a live namespace says, and returns what the controller was waited for, and has done since.
func (s *space) tells(ns *corev1.Namespace) (step string, took time.Duration) {
	was, since := s.waits()
	ended, begun, at := released(ns), HasBegun(ns), s.changed
	s.excused = slices.ContainsFunc(ns.Status.Conditions, func(c corev1.NamespaceCondition) bool {
		return c.Status == corev1.ConditionTrue && slices.Contains(excuses, c.Type)
	})
	if begun && s.begun.IsZero() {
		s.begun = at
	}
	s.ended = ended
	if !ended && (!begun || was != stepBegin) {
		return "", 0
	}
	return was, max(0, at.Sub(since))
}

// HasBegun tells whether a namespace controller has begun with a namespace that is being deleted: with its first pass it writes its conditions.
func HasBegun(ns *corev1.Namespace) bool {
	return released(ns) || slices.ContainsFunc(ns.Status.Conditions, func(c corev1.NamespaceCondition) bool {
		return slices.Contains(kinds.OfNamespaceController, c.Type)
	})
}

// released tells whether the namespace controller has taken its finalizer off.
func released(ns *corev1.Namespace) bool {
	return !slices.Contains(ns.Spec.Finalizers, corev1.FinalizerKubernetes)
}

// excuses are the conditions that say why it does not let a namespace go although this process sees nothing in it.
var excuses = []corev1.NamespaceConditionType{
	corev1.NamespaceDeletionDiscoveryFailure, corev1.NamespaceDeletionGVParsingFailure, corev1.NamespaceDeletionContentFailure,
}

var podKind = schema.GroupResource{Resource: "pods"}

// complete tells whether the graph shows all that can be in a namespace, but Events, which hold up nothing.
func complete(all []graph.KindStats) bool {
	return !slices.ContainsFunc(all, func(k graph.KindStats) bool {
		return k.Served && k.Namespaced && k.Deletable && !kinds.Ignored.Has(k.GroupResource()) && (!k.Collected || k.State != graph.Synced || k.Behind != "")
	})
}
