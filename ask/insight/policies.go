package insight

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/controller/words"
	"github.com/weir-dev/weir/policies/v1beta1"
)

// PolicyLine is a policy in one line.
type PolicyLine struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	// File is the file that it was read from; empty for an object.
	File string `json:"file,omitempty"`
	// Ready and Enforced are the statuses of these conditions; empty if it has none.
	Ready    string `json:"ready,omitempty"`
	Enforced string `json:"enforced,omitempty"`
	Matched  *int64 `json:"matched,omitempty"`
	// LastError is the message of the Event PolicyError, or else of the first of these conditions that
	// is False. Any user who may create Events can write the former.
	LastError string `json:"lastError,omitempty"`
}

// Policies returns lines for policies, with the last error of each that Events tell, by kind and
// name.
func Policies(all []v1beta1.FilePolicy, events []corev1.Event) []PolicyLine {
	out := make([]PolicyLine, 0, len(all))
	for _, p := range all {
		l := PolicyLine{Kind: p.Kind, Name: p.Name, File: p.File, Matched: p.Status.Matched}
		for _, c := range []struct {
			of  string
			say *string
		}{{v1beta1.ConditionReady, &l.Ready}, {v1beta1.ConditionEnforced, &l.Enforced}} {
			found := meta.FindStatusCondition(p.Status.Conditions, c.of)
			if found == nil {
				continue
			}
			*c.say = string(found.Status)
			if found.Status == metav1.ConditionFalse && l.LastError == "" {
				l.LastError = c.of + ": " + found.Message
			}
		}
		var last *corev1.Event
		for i := range events {
			e := &events[i]
			if e.Reason == v1beta1.ReasonPolicyError && e.Source.Component == component && e.InvolvedObject.Kind == p.Kind &&
				e.InvolvedObject.Name == p.Name && p.File == "" &&
				(last == nil || last.LastTimestamp.Before(&e.LastTimestamp)) {
				last = e
			}
		}
		if last != nil {
			l.LastError = last.Message
		}
		out = append(out, l)
	}
	slices.SortFunc(out, func(a, b PolicyLine) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name), cmp.Compare(a.File, b.File))
	})
	return out
}

// DrawPolicies writes lines as a table. Errors of writes are returned by the flush.
func DrawPolicies(out io.Writer, all []PolicyLine) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(out, "There is no policy.")
		return err
	}
	t := tabwriter.NewWriter(out, 0, 8, 3, ' ', 0)
	row := func(cells ...string) {
		for i, c := range cells {
			cells[i] = words.Printable(cmp.Or(c, "-"))
		}
		_, _ = fmt.Fprintln(t, strings.Join(cells, "\t"))
	}
	row("KIND", "NAME", "FROM", "READY", "ENFORCED", "MATCHED", "LAST ERROR")
	for _, l := range all {
		matched := ""
		if l.Matched != nil {
			matched = fmt.Sprint(*l.Matched)
		}
		row(l.Kind, l.Name, cmp.Or(l.File, "object"), l.Ready, l.Enforced, matched, l.LastError)
	}
	return t.Flush()
}
