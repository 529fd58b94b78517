package insight

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/words"
	"github.com/weir-dev/weir/policies/v1beta1"
)

// Orphan is an object with an owner that is absent, cannot be resolved, or is not what the
// reference says; or one that was kept when its owners were deleted, and has none any more.
type Orphan struct {
	Object
	// Fate is what a collector does with it: delete, release (remove the reference), keep (for
	// now), or nothing (protected).
	Fate string `json:"fate"`
	Why  string `json:"why"`
}

// Orphans returns all orphans, sorted.
func (w *World) Orphans() []Orphan {
	out := []Orphan{} // not nil: JSON has a list, even if it is empty
	for v := range w.surveyed() {
		if v.Deleting {
			continue
		}
		if len(v.Owners) == 0 {
			if why := w.keptBecause(v); why != "" {
				out = append(out, Orphan{Object: objectOf(v), Fate: "protected", Why: why})
			}
			continue
		}
		w.settle(v.UID)
		if o, ok := w.orphan(v); ok {
			out = append(out, o)
		}
	}
	slices.SortFunc(out, func(a, b Orphan) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// keptBecause returns why an object was kept when its owners were deleted; empty if it was not.
func (w *World) keptBecause(v *graph.View) string {
	m := w.Meta(v.UID)
	if m == nil || len(v.Owners) > 0 {
		return ""
	}
	return words.Printable(m.Annotations[v1beta1.KeptAnnotation])
}

func (w *World) orphan(v *graph.View) (Orphan, bool) {
	if isCanary(v) {
		return Orphan{}, false
	}
	a := w.Graph.Decide(v.UID)
	o := Orphan{Object: objectOf(v), Why: a.Why}
	switch {
	case a.Verb == graph.Delete && a.AwaitedBy == nil:
		o.Fate = "delete"
	case a.Verb == graph.Release:
		o.Fate = "release"
	case a.Unresolvable != graph.Resolvable:
		o.Fate = "keep"
	default:
		return Orphan{}, false
	}
	now, _ := w.Graph.Find(v.UID)
	o.Why = strings.Join(append([]string{a.Why}, w.astray(&now)...), "; ")
	return o, true
}

// isCanary reports whether an object is the one by which Weir finds out which collector works. Weir
// leaves it alone although its owner is absent.
func isCanary(v *graph.View) bool {
	return v.Name == v1beta1.CollectorCanary && len(v.Owners) == 1 && v.Owners[0].UID == v1beta1.CollectorCanaryOwner
}

// DrawOrphans writes orphans by their fates. If there are none, it says where it looked.
func DrawOrphans(out io.Writer, all []Orphan, namespace string, style Style) error {
	var b strings.Builder
	for _, fate := range []struct{ name, title string }{
		{"delete", "A garbage collector deletes these"},
		{"release", "A garbage collector removes references from these, and keeps them"},
		{"keep", "These are kept, because their owners cannot be determined"},
		{"protected", "These were kept when their owners were deleted, and Weir removed their references to them"},
	} {
		var lines []string
		for _, o := range all {
			if o.Fate == fate.name {
				lines = append(lines, fmt.Sprintf("%s: %s", o.Object, o.Why))
			}
		}
		if len(lines) > 0 {
			section(&b, fate.title, lines, style)
		}
	}
	if len(all) == 0 {
		fmt.Fprintf(&b, "No object %s names an owner that is gone or cannot be determined.\n", scope(namespace))
	}
	_, err := io.WriteString(out, b.String())
	return err
}
