package insight

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
)

// doubt is an owner of which a plan could not find out whether it is there, although its kind is
// none that could not be listed.
type doubt struct {
	owner types.UID
	what  Unread
}

// answer is what lists tell about an owner of an object. What they do not tell is remembered: the
// plan may rest on it.
func (w *World) answer(c graph.Claim, of types.UID) graph.LookupAnswered {
	out := w.told(c, of)
	if out.Answer == graph.Unanswered && !w.Unreadable(c.Resource) {
		w.doubts = append(w.doubts, doubt{c.UID, Unread{Kind: "owners of the kind " + c.Resource.String(), Reason: out.Reason, Besides: true}})
	}
	return out
}

// doubtful are the owners, by kind, of which it matters that nothing is known of them: an object is
// kept for no other reason.
func (w *World) doubtful() (out []Unread) {
	if len(w.doubts) == 0 {
		return nil
	}
	kept := map[types.UID]bool{} // on account of these owners
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
