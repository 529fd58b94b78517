package insight

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/weir-dev/weir/controller/words"
	"github.com/weir-dev/weir/policies/v1alpha1"
)

// Cascade is what Weir's controller has recorded of an object because of which others were collected.
type Cascade struct {
	// Kind, Namespace, Name and UID are those of the object that went first.
	Kind      string    `json:"kind"`
	Namespace string    `json:"namespace,omitempty"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid"`
	At        time.Time `json:"at"`
	What      string    `json:"what"`
}

// component is the source of Weir's Events. Whoever may create Events can write it, too: it keeps apart what others call a cascade, and
// proves nothing.
const component = "weir"

// History are the cascades that Weir's Events tell, the last first. Of several about one object the last tells all.
func History(events []corev1.Event) []Cascade {
	last := map[types.UID]Cascade{}
	for i := range events {
		e := &events[i]
		c := Cascade{Kind: e.InvolvedObject.Kind, Namespace: e.InvolvedObject.Namespace, Name: e.InvolvedObject.Name, UID: e.InvolvedObject.UID, At: e.LastTimestamp.Time, What: e.Message}
		if before, ok := last[c.UID]; e.Reason == v1alpha1.ReasonCascade && e.Source.Component == component && (!ok || before.At.Before(c.At)) {
			last[c.UID] = c
		}
	}
	out := make([]Cascade, 0, len(last))
	for _, c := range last {
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b Cascade) int { return cmp.Or(b.At.Compare(a.At), cmp.Compare(a.UID, b.UID)) })
	return out
}

// DrawHistory writes cascades.
func DrawHistory(out io.Writer, all []Cascade, now time.Time) error {
	var b strings.Builder
	for _, c := range all {
		name := c.Name
		if c.Namespace != "" {
			name = c.Namespace + "/" + name
		}
		fmt.Fprintf(&b, "%s ago  %s\n", duration.HumanDuration(max(0, now.Sub(c.At))), words.Printable(c.Kind+" "+name+": "+c.What))
	}
	if len(all) == 0 {
		b.WriteString("No cascade is recorded. Weir's controller records one as an Event where it collects (--mode replace), and Events are kept for an hour\n" +
			"where the API server's --event-ttl does not say otherwise.\n")
	}
	_, err := io.WriteString(out, b.String())
	return err
}
