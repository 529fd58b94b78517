package insight

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// Change is in what a plan differs from an earlier one about an object.
type Change struct {
	Object
	// Was and Is are the outcomes; empty where the object is not in the plan.
	Was Outcome `json:"was,omitempty"`
	Is  Outcome `json:"is,omitempty"`
}

// ChangesSince are all of them, sorted.
func (p *Plan) ChangesSince(earlier *Plan) []Change {
	was := map[types.UID]*Item{}
	for _, i := range earlier.Items {
		was[i.UID] = i
	}
	var out []Change
	for _, i := range p.Items {
		before := was[i.UID]
		delete(was, i.UID)
		if before == nil {
			out = append(out, Change{Object: i.Object, Is: i.Outcome})
		} else if before.Outcome != i.Outcome {
			out = append(out, Change{Object: i.Object, Was: before.Outcome, Is: i.Outcome})
		}
	}
	for _, i := range was {
		out = append(out, Change{Object: i.Object, Was: i.Outcome})
	}
	slices.SortFunc(out, func(a, b Change) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
	return out
}

// DrawChanges writes them.
func DrawChanges(out io.Writer, changes []Change) error {
	var err error
	line := func(format string, args ...any) {
		if err == nil {
			_, err = fmt.Fprintf(out, format+"\n", args...)
		}
	}
	words := map[Outcome]string{Deleted: "is deleted", Released: "is kept and loses a reference", Unknown: "is kept, because its owners cannot be told", Stuck: "is stuck"}
	for _, c := range changes {
		switch {
		case c.Was == "":
			line("+ %s: is new in the plan: %s", c.Object, words[c.Is])
		case c.Is == "":
			line("- %s: is not in the plan any more", c.Object)
		default:
			line("~ %s: %s now; before, it %s", c.Object, words[c.Is], words[c.Was])
		}
	}
	switch len(changes) {
	case 0:
		line("The plan is the same as before.")
	case 1:
		line("\nThe plan has changed in 1 object.")
	default:
		line("\nThe plan has changed in %d objects.", len(changes))
	}
	return err
}
