package insight

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
)

// doubt is an owner that could not be looked up, although its kind could be listed.
type doubt struct {
	owner types.UID
	what  Unread
}

// answer is lookup, and remembers what it could not answer: the plan may rest on it.
func (w *World) answer(c graph.Claim, of types.UID) graph.LookupAnswered {
	out := w.lookup(c, of)
	if out.Answer == graph.Unanswered && !w.Unreadable(c.Resource) {
		w.doubts = append(w.doubts, doubt{c.UID, Unread{
			Kind: "owners of the kind " + c.Resource.String(), Reason: out.Reason, Besides: true,
		}})
	}
	return out
}

// doubtful returns the doubts that matter, by kind: those about owners for whose sake alone an
// object is kept.
func (w *World) doubtful() (out []Unread) {
	if len(w.doubts) == 0 {
		return nil
	}
	kept := map[types.UID]bool{} // owners whose state is unknown, and for whom an object is kept
	for v := range w.objects() {
		if len(v.Owners) > 0 && w.Graph.Decide(v.UID).Unresolvable == graph.Unreadable {
			for _, o := range v.Owners {
				kept[o.UID] = true
			}
		}
	}
	for _, d := range w.doubts {
		if kept[d.owner] && !slices.ContainsFunc(out, func(u Unread) bool { return u.Kind == d.what.Kind }) {
			out = append(out, d.what)
		}
	}
	return out
}
