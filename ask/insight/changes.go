package insight

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/words"
)

// Change is a difference between two plans of the same deletes.
type Change struct {
	topic
	// Was and Is are what the plans say; empty if a plan says nothing about it.
	Was string `json:"was,omitempty"`
	Is  string `json:"is,omitempty"`
}

// topic is what a statement of a plan is about: an object, the delete of one, or a kind that could
// not be read.
type topic struct {
	About string    `json:"about"`
	UID   types.UID `json:"uid,omitempty"` // if the statement is about an object
}

// deletionPolicies is the kind of policies that refuse deletes.
const deletionPolicies = "deletionpolicies.weir.dev"

// outcomes are the words for outcomes in a sentence about an object.
var outcomes = map[Outcome]string{
	Deleted: "is deleted", Released: "is kept and loses a reference",
	Unknown: "is kept, because its owners cannot be determined", Stuck: "is stuck",
}

// ChangesSince returns the differences from an earlier plan, sorted.
func (p *Plan) ChangesSince(earlier *Plan) []Change {
	was, is := earlier.statements(p), p.statements(earlier)
	about := map[topic]bool{}
	for _, all := range []map[topic]string{was, is} {
		for s := range all {
			about[s] = was[s] != is[s]
		}
	}
	out := []Change{} // not nil: JSON has a list, even if it is empty
	for s, differs := range about {
		if differs {
			out = append(out, Change{s, was[s], is[s]})
		}
	}
	slices.SortFunc(out, func(a, b Change) int {
		return cmp.Or(cmp.Compare(a.About, b.About), cmp.Compare(a.Is, b.Is), cmp.Compare(a.UID, b.UID))
	})
	return out
}

// statements returns what a plan says, to be compared with other.
func (p *Plan) statements(other *Plan) map[topic]string {
	out := map[topic]string{}
	theirs := byUID(other.Items)
	rank := ranks(p.Items, theirs)
	for _, i := range p.Items {
		out[topic{i.String(), i.UID}] = i.statement(theirs[i.UID], rank[i.UID])
		delete(theirs, i.UID)
	}
	for _, i := range theirs {
		if unreadKind(p.Unread, i.Kind) {
			out[topic{i.String(), i.UID}] = "is not known: its kind could not be read"
		}
	}
	deleteOf := func(o Object) topic { return topic{About: "the delete of " + o.String()} }
	for _, r := range p.Roots {
		if unreadKind(p.Unread, deletionPolicies) {
			out[deleteOf(r)] = "is not judged: policies could not be read"
		}
	}
	for _, v := range p.Verdicts {
		if text := v.statement(); text != "" {
			out[deleteOf(v.Object)] = text
		}
	}
	unread := p.Unread
	if p.Held == "" && len(p.Roots) == 0 { // all roots are gone, so nothing was read
		unread = other.Unread
	}
	for _, u := range unread {
		out[topic{About: u.Kind}] = "could not be read: " + u.Reason
	}
	return out
}

// statement says what becomes of an object. other is its item in the other plan, or nil. The grace
// period of a pod is part of it only if both plans know it.
func (i *Item) statement(other *Item, rank int) string {
	text, said := outcomes[i.Outcome], *i
	if other == nil || other.GracePeriodSeconds == nil {
		said.GracePeriodSeconds = nil
	}
	if rank > 0 {
		text += fmt.Sprintf(" in step %d of what both plans delete", rank)
	}
	if note := said.note(Style{}); note != "" {
		text += ": " + note
	}
	return text
}

// statement says what a verdict comes to; empty if nothing is against the delete. It omits the
// confirmation, which follows from the plan.
func (v *Verdict) statement() string {
	switch {
	case v.Refused:
		return "is refused: " + v.Message
	case v.Doubt != "":
		return "is in doubt: " + v.Doubt
	case len(v.Warnings) > 0:
		return "is warned about: " + strings.Join(v.Warnings, "; ")
	}
	return ""
}

func byUID(items []*Item) map[types.UID]*Item {
	out := make(map[types.UID]*Item, len(items))
	for _, i := range items {
		out[i.UID] = i
	}
	return out
}

// ranks numbers the steps in which objects are deleted that the other plan deletes, too. Only these
// steps count, so objects that are new or gone do not move all that follow.
func ranks(items []*Item, other map[types.UID]*Item) map[types.UID]int {
	steps, out := map[int]bool{}, map[types.UID]int{}
	for _, i := range items {
		if o := other[i.UID]; o != nil && o.Outcome == Deleted && i.Outcome == Deleted {
			out[i.UID], steps[i.Step] = i.Step, true
		}
	}
	order := slices.Sorted(maps.Keys(steps))
	for uid, step := range out {
		n, _ := slices.BinarySearch(order, step)
		out[uid] = n + 1
	}
	return out
}

// unreadKind reports whether a kind, or its API group, is among those that could not be read.
func unreadKind(all []Unread, kind string) bool {
	return slices.ContainsFunc(all, func(u Unread) bool {
		gv, group := strings.CutPrefix(u.Kind, allOf)
		parsed, err := schema.ParseGroupVersion(gv)
		return u.Kind == kind || group && err == nil && parsed.Group == schema.ParseGroupResource(kind).Group
	})
}

// DrawChanges writes changes, and the summary of the plan as it is now as the last line.
func DrawChanges(out io.Writer, all []Change, now *Plan, style Style) error {
	text := "The plan is the same as before.\n"
	if len(all) > 0 {
		fold := newFolding(style)
		branches := make([]*branch, len(all))
		for n, c := range all {
			b := &branch{symbol: "~", names: []string{c.About}, note: c.Is + "; before: " + c.Was}
			switch {
			case c.Was == "":
				b.symbol, b.note = "+", c.Is
			case c.Is == "":
				b.symbol, b.note = "-", "not any more: "+c.Was
			}
			kind, _, _ := strings.Cut(c.About, "/")
			fold.seal(b, kind)
			branches[n] = b
		}
		lines := drawn(fold.alike(branches), style, mostLines)
		text = fmt.Sprintf("%s\n\nThe plan has changed in %s.\n", strings.Join(lines, "\n"),
			words.Count(len(all), "point", "points"))
	}
	_, err := io.WriteString(out, text+now.Summary()+"\n")
	return err
}
