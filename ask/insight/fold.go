package insight

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-dev/weir/controller/words"
)

const (
	// mostLines bounds the lines of a drawing that is not Full: one screen.
	mostLines = 40
	// mostSaid bounds the deletes whose verdicts it shows, mostUnread the kinds that could not be
	// read.
	mostSaid, mostUnread = 4, 5
	// leastLines are left for the objects of a plan, whatever else is shown.
	leastLines = 10
)

// Line is a line of a drawing: objects that are alike, and what is said about them.
type Line struct {
	Depth  int    `json:"depth"`
	Symbol string `json:"symbol"`
	// Objects are the first of the objects that the line stands for, Count is how many these are;
	// 0: the line says how much is left out.
	Objects []Object `json:"objects,omitempty"`
	Count   int      `json:"count,omitempty"`
	Note    string   `json:"note,omitempty"`
	// Each reports whether each of several objects has lines like those below for itself.
	Each bool `json:"each,omitempty"`
}

// branch is a line of a drawing with the lines below it. Siblings that are alike are one branch.
type branch struct {
	symbol  string
	objects []Object // that it stands for
	note    string
	below   []*branch
	sign    int // is the same for siblings that are alike
}

// folding merges siblings that are alike. What a branch is like is a number: as text it would be as
// long as all that is below.
type folding struct {
	style Style
	signs map[string]int
}

func newFolding(style Style) *folding { return &folding{style: style, signs: map[string]int{}} }

// seal folds what is below a branch, and sets its sign.
func (f *folding) seal(b *branch, kind string) {
	b.below = f.alike(b.below)
	var s strings.Builder
	fmt.Fprintf(&s, "%s|%s|%s", b.symbol, kind, b.note)
	for _, d := range b.below {
		fmt.Fprintf(&s, "|%d*%d", d.sign, len(d.objects))
	}
	if f.signs[s.String()] == 0 {
		f.signs[s.String()] = len(f.signs) + 1
	}
	b.sign = f.signs[s.String()]
}

// alike merges branches that are alike, and sorts those first that need attention.
func (f *folding) alike(all []*branch) []*branch {
	if !f.style.Full {
		bySign := map[int]*branch{}
		all = slices.DeleteFunc(all, func(b *branch) bool {
			first := bySign[b.sign]
			if first == nil {
				bySign[b.sign] = b
				return false
			}
			first.join(b)
			return true
		})
	}
	order := map[string]int{"!": 0, "?": 1, "~": 2, "-": 3, "+": 3, "=": 4}
	slices.SortStableFunc(all, func(a, b *branch) int { return cmp.Compare(order[a.symbol], order[b.symbol]) })
	return all
}

// join merges a branch that is alike, and what is below it.
func (b *branch) join(other *branch) {
	b.objects = append(b.objects, other.objects...)
	for i, d := range other.below {
		b.below[i].join(d)
	}
}

// linesOf returns the lines of branches. Unless Full, these are no more than most, and the last
// says how much is left out.
func linesOf(branches []*branch, style Style, most int) (lines []Line) {
	var walk func(b *branch, depth int)
	walk = func(b *branch, depth int) {
		slices.SortFunc(b.objects, func(a, b Object) int { return byName(&a, &b) })
		lines = append(lines, Line{Depth: depth, Symbol: b.symbol, Objects: b.objects[:min(len(b.objects), someNames)],
			Count: len(b.objects), Note: b.note, Each: len(b.below) > 0 && len(b.objects) > 1})
		for _, d := range b.below {
			walk(d, depth+1)
		}
	}
	for _, b := range branches {
		walk(b, 0)
	}
	if style.Full || len(lines) <= most {
		return lines
	}
	objects, more := 0, len(lines)-(most-1)
	for _, l := range lines[most-1:] {
		objects += l.Count
	}
	return append(lines[:most-1], Line{Symbol: "…", Note: fmt.Sprintf("%s more, with %s: --full shows them",
		words.Count(more, "line", "lines"), words.Count(objects, "object", "objects"))})
}

// textOf returns lines as text, each with a line break. Names are without the given namespace.
func textOf(lines []Line, namespace string, style Style) string {
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(strings.Repeat("  ", l.Depth) + style.paint(l.Symbol, l.Symbol+" "+l.title(namespace)) + "\n")
	}
	return b.String()
}

// title names the objects of a line, and adds its note.
func (l *Line) title(namespace string) (text string) {
	for i, o := range l.Objects {
		name := o.Short(namespace)
		if i > 0 {
			name = ", " + name[strings.Index(name, "/")+1:]
		}
		text += name
	}
	if l.Count > len(l.Objects) {
		text += fmt.Sprintf(" and %d more", l.Count-len(l.Objects))
	}
	if l.Each {
		text += ", each with its own"
	}
	if text != "" && l.Note != "" {
		text += ": "
	}
	return text + l.Note
}
