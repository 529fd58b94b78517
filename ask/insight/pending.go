package insight

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/words"
)

// Ending is an object that is being deleted.
type Ending struct {
	Object
	// Since is how long it has been terminating; empty if that is not known.
	Since string `json:"since,omitempty"`
	// Waits says what it waits for; Blockers are the first of these objects.
	Waits    string   `json:"waits"`
	Blockers []Object `json:"blockers,omitempty"`

	at time.Time
}

// Group is what waits for one actor.
type Group struct {
	Actor string   `json:"actor"`
	Items []Ending `json:"items"`
}

// Pending returns all objects that are being deleted, grouped by who has to act. Groups, and the
// objects in them, are sorted by age, the oldest first.
func (w *World) Pending(now time.Time) []Group {
	groups, waits := map[string]*Group{}, w.explain(now)
	for v := range w.surveyed() {
		if !v.Deleting {
			continue
		}
		e := w.ending(v, now)
		for _, c := range waits.of(v) {
			one := e
			one.Waits, one.Blockers = c.What, c.Objects
			g := groups[c.Actor]
			if g == nil {
				g = &Group{Actor: c.Actor}
				groups[c.Actor] = g
			}
			g.Items = append(g.Items, one)
		}
	}
	out := make([]Group, 0, len(groups))
	for _, g := range groups {
		slices.SortFunc(g.Items, older)
		out = append(out, *g)
	}
	slices.SortFunc(out, func(a, b Group) int {
		return cmp.Or(older(a.Items[0], b.Items[0]), cmp.Compare(a.Actor, b.Actor))
	})
	return out
}

// Ends reports whether anything is being deleted.
func (w *World) Ends() bool {
	for v := range w.surveyed() {
		if v.Deleting {
			return true
		}
	}
	return false
}

func older(a, b Ending) int {
	return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.String(), b.String()), cmp.Compare(a.UID, b.UID))
}

func (w *World) ending(v *graph.View, now time.Time) Ending {
	e := Ending{Object: objectOf(v)}
	if m := w.Meta(v.UID); m != nil && m.DeletionTimestamp != nil {
		e.at = deletedAt(m)
		e.Since = duration.HumanDuration(max(0, now.Sub(e.at)))
	}
	return e
}

// deletedAt returns when the delete was requested: deletionTimestamp is the end of the grace
// period.
func deletedAt(m *metav1.PartialObjectMetadata) time.Time {
	at := m.DeletionTimestamp.Time
	if g := m.DeletionGracePeriodSeconds; g != nil {
		at = at.Add(-time.Duration(*g) * time.Second)
	}
	return at
}

// scope says where an answer looked, and how to look elsewhere.
func scope(namespace string) string {
	if namespace == "" {
		return "in the cluster"
	}
	return fmt.Sprintf("in the namespace %s (-A asks about the cluster)", namespace)
}

// DrawPending writes groups. If there are none, it says where it looked: in the namespace, or in
// the cluster if that is empty.
func DrawPending(out io.Writer, groups []Group, namespace string, style Style) error {
	var b strings.Builder
	for _, g := range groups {
		objects := map[types.UID]bool{} // an object may wait for one actor for several reasons
		var lines []string
		for _, e := range g.Items {
			objects[e.UID] = true
			since := ""
			if e.Since != "" {
				since = " for " + e.Since
			}
			lines = append(lines, fmt.Sprintf("%s%s: %s", e.Object, since, e.Waits))
		}
		section(&b, words.Count(len(objects), "waits", "wait")+" for "+g.Actor, lines, style)
	}
	if len(groups) == 0 {
		fmt.Fprintf(&b, "Nothing is being deleted %s.\n", scope(namespace))
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// section writes a title and the lines below it, no more than ten unless Full.
func section(b *strings.Builder, title string, lines []string, style Style) {
	const most = 10
	if b.Len() > 0 {
		b.WriteByte('\n')
	}
	fmt.Fprintf(b, "%s:\n", title)
	for n, line := range lines {
		if n == most && !style.Full {
			fmt.Fprintf(b, "  … and %d more: --full shows them\n", len(lines)-most)
			break
		}
		fmt.Fprintf(b, "  %s\n", line)
	}
}
