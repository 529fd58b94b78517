package insight

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/weir-dev/weir/controller/words"
	"github.com/weir-dev/weir/policies/v1beta1"
)

// Cascade is what Weir has recorded about an object that was deleted: what was collected because of
// it.
type Cascade struct {
	// Kind, Namespace, Name and UID are those of the object that was deleted first.
	Kind      string    `json:"kind"`
	Namespace string    `json:"namespace,omitempty"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid"`
	At        time.Time `json:"at"`
	What      string    `json:"what,omitempty"` // what was collected
	// Collected are the first of the objects that were collected.
	Collected []Object `json:"collected,omitempty"`

	part *Object // the one of Collected that is asked about; nil: the first object
}

// component is the source of Weir's Events. It tells them from others' Events of the same reason,
// and proves nothing: any user who may create Events can write it.
const component = "weir"

// History returns the cascades in Weir's Events, the last first. Of several Events about one object
// the last counts.
func History(events []corev1.Event) []Cascade {
	byUID := map[types.UID]*Cascade{}
	for i := range events {
		e := &events[i]
		on, at := &e.InvolvedObject, e.LastTimestamp.Time
		if e.Source.Component != component || e.Reason != v1beta1.ReasonCascade {
			continue
		}
		if last := byUID[on.UID]; last == nil || last.At.Before(at) {
			byUID[on.UID] = &Cascade{Kind: on.Kind, Namespace: on.Namespace, Name: on.Name, UID: on.UID,
				At: at, What: e.Message, Collected: collectedOf(e)}
		}
	}
	out := make([]Cascade, 0, len(byUID))
	for _, c := range byUID {
		out = append(out, *c)
	}
	slices.SortFunc(out, func(a, b Cascade) int { return cmp.Or(b.At.Compare(a.At), cmp.Compare(a.UID, b.UID)) })
	return out
}

// collectedOf returns the objects in the annotation of an Event, or nil if Weir did not write it.
func collectedOf(e *corev1.Event) (out []Object) {
	if json.Unmarshal([]byte(e.Annotations[v1beta1.CollectedAnnotation]), &out) != nil {
		return nil
	}
	return out
}

// RecordsOf returns the cascades that deleted an object of that name, as the first object or
// another, whatever its uid was: in its namespace, or everywhere. kindName is its kind as Events
// have it. The last is first.
func RecordsOf(events []corev1.Event, o Object, kindName string, everywhere bool) (out []Cascade) {
	in := func(namespace string) bool { return everywhere || namespace == o.Namespace }
	group := schema.ParseGroupResource(o.Kind).Group
	of := map[types.UID]bool{}
	out = []Cascade{} // not nil: JSON has a list, even if it is empty
	for i := range events {
		if on := &events[i].InvolvedObject; on.Kind == kindName && on.GroupVersionKind().Group == group && in(on.Namespace) &&
			on.Name == o.Name {
			of[on.UID] = true
		}
	}
	for _, c := range History(events) {
		if of[c.UID] {
			out = append(out, c)
			continue
		}
		for _, went := range c.Collected {
			if went.Kind == o.Kind && in(went.Namespace) && went.Name == o.Name {
				c.part = &went
				out = append(out, c)
				break
			}
		}
	}
	return out
}

// uid returns the uid of the object that is asked about.
func (c *Cascade) uid() types.UID {
	if c.part != nil {
		return c.part.UID
	}
	return c.UID
}

// sentence says how the object that is asked about was deleted.
func (c *Cascade) sentence(now time.Time) string {
	ago := duration.HumanDuration(max(0, now.Sub(c.At))) + " ago"
	if c.part != nil {
		return fmt.Sprintf("%s, because of %s: %s", ago, c.root(), c.said())
	}
	return ago + ": " + c.said()
}

// root names the object that was deleted first.
func (c *Cascade) root() string { return named(c.Kind, c.Namespace, c.Name) }

// said is the record in one line.
func (c *Cascade) said() string { return words.Printable(c.What) }

// Gone says of an object that does not exist what Events tell of its deletion. kindName is its kind
// as Events have it. It returns false if nothing is known.
func Gone(o Object, kindName string, events []corev1.Event, now time.Time) (Answer, bool) {
	a := Answer{Object: o, State: "is not there"}
	for _, r := range RecordsOf(events, o, kindName, false) {
		a.UID = r.uid()
		c := Cause{What: "it was deleted " + r.sentence(now), Evidence: []string{fmt.Sprintf("the Event on %s; "+
			"whoever may create Events can write one, the audit log of the API server is the proof", r.root())},
			Look: "kubectl weir history -n " + words.Shell(cmp.Or(r.Namespace, metav1.NamespaceDefault))}
		a.Causes = append(a.Causes, c)
	}
	return a, len(a.Causes) > 0
}

// DrawHistory writes cascades. Unless Full, it writes the last ones only.
func DrawHistory(out io.Writer, all []Cascade, now time.Time, style Style) error {
	var b strings.Builder
	for i := range all {
		if i == mostLines-1 && len(all) > mostLines && !style.Full {
			fmt.Fprintf(&b, "… and %d before that: --full shows them\n", len(all)-i)
			break
		}
		c := &all[i]
		fmt.Fprintf(&b, "%s ago  %s: %s\n", duration.HumanDuration(max(0, now.Sub(c.At))), c.root(), c.said())
	}
	if len(all) == 0 {
		b.WriteString("No cascade is recorded. Weir's controller records one as an Event where it collects " +
			"(--mode replace), and Events are kept for an hour\n" +
			"where the API server's --event-ttl does not say otherwise.\n")
	}
	_, err := io.WriteString(out, b.String())
	return err
}
