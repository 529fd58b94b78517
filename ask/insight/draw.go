package insight

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/words"
	"github.com/weir-dev/weir/policies/v1beta1"
)

// Style says how a plan or a tree is drawn.
type Style struct {
	// Full draws every object, with its step, in as many lines as that takes.
	Full bool
	// Colour adds colours, for terminals.
	Colour bool
}

// symbols are those that users know from terraform plan.
var symbols = map[Outcome]string{Deleted: "-", Released: "~", Unknown: "?", Stuck: "!"}

var colours = map[string]string{"+": "\x1b[32m", "✗": "\x1b[1;31m", "-": "\x1b[31m", "~": "\x1b[33m", "?": "\x1b[35m",
	"!": "\x1b[1;31m"}

func (s Style) paint(symbol, text string) string {
	if !s.Colour || colours[symbol] == "" {
		return text
	}
	return colours[symbol] + text + "\x1b[0m"
}

// Draw writes a plan as a tree, from the roots down.
func (p *Plan) Draw(w io.Writer, style Style) error {
	out, unread := p.said(style), p.unread(style)
	lines := p.Lines(style, max(leastLines, mostLines-strings.Count(out+unread, "\n")))
	if len(lines) > 0 {
		out += textOf(lines, p.namespace(), style) + "\n"
	}
	_, err := io.WriteString(w, out+unread+p.Summary()+"\n")
	return err
}

// namespace returns the namespace of the roots; empty if they are of several.
func (p *Plan) namespace() (namespace string) {
	for n, r := range p.Roots {
		in := r.Namespace
		if r.Kind == namespaces.String() {
			in = r.Name
		}
		if n > 0 && namespace != in {
			return ""
		}
		namespace = in
	}
	return namespace
}

// said says what policies say about the deletes of roots, refusals first. Unless Full, it says only
// the first few.
func (p *Plan) said(style Style) string {
	var said []Verdict
	for _, v := range p.Verdicts {
		if v.Refused || v.Doubt != "" || len(v.Warnings) > 0 {
			said = append(said, v)
		}
	}
	rank := func(v Verdict) int {
		switch {
		case v.Refused:
			return 0
		case v.Doubt != "":
			return 1
		}
		return 2
	}
	slices.SortStableFunc(said, func(a, b Verdict) int { return rank(a) - rank(b) })
	more := 0
	if !style.Full && len(said) > mostSaid {
		said, more = said[:mostSaid], len(said)-mostSaid
	}
	var b strings.Builder
	for _, v := range said {
		v.draw(&b, style)
	}
	if more > 0 {
		fmt.Fprintf(&b, "… and %d more deletes about which policies have something to say: --full shows them\n\n", more)
	}
	return b.String()
}

func (v *Verdict) draw(b *strings.Builder, style Style) {
	if v.Refused {
		refusal := fmt.Sprintf("✗ %s: a policy refuses the delete: %s", v.Object, v.Message)
		b.WriteString(style.paint("!", refusal) + "\n")
		if v.Confirm != "" {
			b.WriteString("To confirm exactly what this plan shows: " + v.Confirm + "\n")
		}
		b.WriteByte('\n')
	}
	if v.Doubt != "" {
		b.WriteString(style.paint("?", fmt.Sprintf("? %s: whether a policy refuses the delete is not known: %s",
			v.Object, v.Doubt)) + "\n\n")
	}
	for _, w := range v.Warnings {
		b.WriteString(style.paint("~", fmt.Sprintf("⚠ %s: %s", v.Object, w)) + "\n\n")
	}
}

// unread says what could not be read. Unless Full, it says only the first few.
func (p *Plan) unread(style Style) string {
	var b strings.Builder
	for n, u := range p.Unread {
		if n == mostUnread-1 && len(p.Unread) > mostUnread && !style.Full {
			b.WriteString(style.paint("?", fmt.Sprintf("? and %d more could not be read: --full names them",
				len(p.Unread)-n)) + "\n")
			break
		}
		b.WriteString(style.paint("?", fmt.Sprintf("? %s could not be read: %s", u.Kind, u.Reason)) + "\n")
	}
	return b.String()
}

// Summary says in a sentence what the plan does.
func (p *Plan) Summary() string {
	t := p.Totals()
	var parts []string
	add := func(n int, one, many string) {
		if n > 0 {
			parts = append(parts, words.Count(n, one, many))
		}
	}
	add(t.Deleted, "object is deleted", "objects are deleted")
	if t.Deleted > 0 && t.Steps > 1 {
		parts[0] += fmt.Sprintf(" in %d steps", t.Steps)
	}
	add(t.Braked, "of them is held until a person decides", "of them are held until a person decides")
	add(t.Held, "of them waits for finalizers that others remove", "of them wait for finalizers that others remove")
	add(t.Later, "is deleted only after that", "are deleted only after that")
	add(t.Volumes, "volume loses its data", "volumes lose their data")
	add(t.CreatedAgain, "is likely to be created again by its controller",
		"are likely to be created again by their controllers")
	add(t.Released, "is kept and loses a reference", "are kept and lose a reference")
	add(t.Unknown, "is kept because its owners cannot be determined for certain",
		"are kept because their owners cannot be determined for certain")
	add(t.Stuck, "is stuck", "are stuck")
	if len(parts) == 0 {
		parts = []string{"nothing is deleted"}
	}
	s := "Plan: "
	switch {
	case t.Refused == len(p.Roots) && t.Refused > 0:
		s += "policies refuse it; without them "
	case t.Refused > 0:
		s += fmt.Sprintf("policies refuse %d of %d deletes; without them ", t.Refused, len(p.Roots))
	}
	s += strings.Join(parts, ", ") + "."
	if len(p.Unread) > 0 {
		s += fmt.Sprintf(" Incomplete: %s.", p.incomplete())
	}
	if t.Doubtful > 0 {
		s += fmt.Sprintf(" In doubt: what policies say about %d of the deletions.", t.Doubtful)
	}
	if t.Contested > 0 {
		s += fmt.Sprintf(" In doubt: for %d of them it depends on the order of events whether %s.", t.Contested,
			map[bool]string{true: "it is deleted", false: "they are deleted"}[t.Contested == 1])
	}
	return s
}

// incomplete says how much could not be read.
func (p *Plan) incomplete() string {
	kinds := 0
	for _, u := range p.Unread {
		if !u.Besides {
			kinds++
		}
	}
	switch rest := len(p.Unread) - kinds; {
	case rest == 0:
		return fmt.Sprintf("%d of the kinds could not be read", kinds)
	case kinds == 0:
		return "not all that the plan needs could be read"
	}
	return fmt.Sprintf("%d of the kinds, and other things that the plan needs, could not be read", kinds)
}

// Incomplete reports whether the deletion may go otherwise than the plan says: something could not
// be read or judged, or depends on the order of events.
func (p *Plan) Incomplete() bool {
	t := p.Totals()
	return len(p.Unread) > 0 || t.Doubtful > 0 || t.Contested > 0
}

// Lines returns the roots with all that is below them: each item once, below the first of its
// owners that is met. Unless Full, these are no more than most lines.
func (p *Plan) Lines(style Style, most int) []Line {
	byUID := map[types.UID]*Item{}
	below := map[types.UID][]*Item{}
	for _, i := range p.Items {
		byUID[i.UID] = i
	}
	for _, i := range p.Items {
		for _, o := range i.owners {
			if byUID[o] != nil {
				below[o] = append(below[o], i)
			}
		}
		if i.via != "" {
			below[i.via] = append(below[i.via], i)
		}
	}
	met := map[types.UID]bool{}
	fold := newFolding(style)
	var grow func(items []*Item) []*branch
	grow = func(items []*Item) (out []*branch) {
		items = slices.DeleteFunc(slices.Clone(items), func(i *Item) bool {
			before := met[i.UID]
			met[i.UID] = true
			return before
		})
		for _, i := range items {
			b := &branch{symbol: symbolOf(i), objects: []Object{i.Object}, note: i.note(style), below: grow(below[i.UID])}
			fold.seal(b, i.Kind)
			out = append(out, b)
		}
		return out
	}
	var first []*Item
	for _, r := range p.Roots {
		if i := byUID[r.UID]; i != nil {
			first = append(first, i)
		}
	}
	roots := grow(first)
	for _, i := range p.Items { // what is connected with the roots in other ways
		roots = append(roots, grow([]*Item{i})...)
	}
	return linesOf(fold.alike(roots), style, most)
}

func symbolOf(i *Item) string {
	if i.Outcome == Deleted && len(i.Finalizers) > 0 {
		return "!"
	}
	return symbols[i.Outcome]
}

// note is what follows the name of an item.
func (i *Item) note(style Style) string {
	var notes []string
	switch i.Outcome {
	case Deleted:
		if i.Brake != "" {
			notes = append(notes, fmt.Sprintf("held until a person decides (kubectl get held %s%s): %s",
				v1beta1.HeldRequested, i.Kind, i.Brake))
		}
		if others := i.othersFinalizers(); len(others) > 0 {
			notes = append(notes, "waits until "+whoTakesOff(others))
		} else if i.Brake == "" && i.Stage > 0 {
			notes = append(notes, "after that")
		}
		if i.Deleting {
			notes = append(notes, "is being deleted already")
		}
		if v := i.Volume.note(style); v != "" {
			notes = append(notes, v)
		}
		if i.CreatedAgainBy != nil {
			notes = append(notes, fmt.Sprintf("its controller %s lives and is likely to create it again",
				i.CreatedAgainBy.Short(i.Namespace)))
		}
		if i.Contested != "" {
			notes = append(notes, "in doubt: "+i.Contested)
		}
		if i.Doubt != "" {
			notes = append(notes, "a policy may change this: "+i.Doubt)
		}
		if i.Policy != "" {
			notes = append(notes, fmt.Sprintf("%s by policy %s", strings.ToLower(string(i.Propagation)), i.Policy))
		}
		if i.Archive != "" {
			notes = append(notes, fmt.Sprintf("recorded first, with all that is deleted with it, by policy %s", i.Archive))
		}
		if style.Full {
			notes = append(notes, fmt.Sprintf("step %d", i.Step))
			if i.Propagation != "" && i.Policy == "" {
				notes = append(notes, strings.ToLower(string(i.Propagation)))
			}
		}
	case Released:
		if i.Stage > 0 {
			notes = append(notes, "after that")
		}
		notes = append(notes, "kept: "+i.Why)
		if i.Contested != "" {
			notes = append(notes, "in doubt: "+i.Contested)
		}
	default:
		notes = append(notes, i.Why)
	}
	return strings.Join(notes, "; ")
}

// othersFinalizers returns the finalizers that others must remove, without Weir's if a brake holds
// the object by it.
func (i *Item) othersFinalizers() []string {
	return slices.DeleteFunc(slices.Clone(i.Finalizers), func(f string) bool {
		return i.Brake != "" && f == v1beta1.Finalizer
	})
}
