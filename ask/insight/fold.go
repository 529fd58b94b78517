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

// branch is a line of a drawing with the lines below it. Siblings that are alike are one branch.
type branch struct {
	symbol string
	names  []string // of the objects that it stands for, as they are shown
	note   string
	below  []*branch
	sign   int // is the same for siblings that are alike
}

// folding merges siblings that are alike. What a branch is like is a number: as text it would be as
// long as all that is below.
type folding struct {
	style   Style
	signs   map[string]int
	ageless bool // ages are not shown
}

func newFolding(style Style) *folding { return &folding{style: style, signs: map[string]int{}} }

// seal folds what is below a branch, and sets its sign.
func (f *folding) seal(b *branch, kind string) {
	b.below = f.alike(b.below)
	var s strings.Builder
	fmt.Fprintf(&s, "%s|%s|%s", b.symbol, kind, b.note)
	for _, d := range b.below {
		fmt.Fprintf(&s, "|%d*%d", d.sign, len(d.names))
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
	b.names = append(b.names, other.names...)
	for i, d := range other.below {
		b.below[i].join(d)
	}
}

// drawn returns the lines of branches. Unless Full, it counts the lines beyond most instead.
func drawn(branches []*branch, style Style, most int) []string {
	var lines []string
	more, objects, last := 0, 0, 0 // lines that are left out, the objects that they stand for, and those of the last line
	var walk func(b *branch, depth int)
	walk = func(b *branch, depth int) {
		line := ""
		if more == 0 {
			line = strings.Repeat("  ", depth) + style.paint(b.symbol, strings.TrimSpace(b.symbol+" "+b.title()))
		}
		if style.Full || more == 0 && len(lines) < most {
			lines = append(lines, line)
			last = len(b.names)
		} else {
			more++
			objects += len(b.names)
		}
		for _, d := range b.below {
			walk(d, depth+1)
		}
	}
	for _, b := range branches {
		walk(b, 0)
	}
	if more == 0 {
		return lines
	}
	if len(lines) > 1 {
		lines, more, objects = lines[:len(lines)-1], more+1, objects+last
	}
	return append(lines, fmt.Sprintf("… %s more, with %s: --full shows them", words.Count(more, "line", "lines"),
		words.Count(objects, "object", "objects")))
}

// title names the objects of a branch, and adds its note.
func (b *branch) title() string {
	names := slices.Clone(b.names)
	slices.Sort(names)
	text := names[0]
	for _, n := range names[1:min(len(names), someNames)] {
		text += ", " + n[strings.Index(n, "/")+1:]
	}
	if len(names) > someNames {
		text += fmt.Sprintf(" and %d more", len(names)-someNames)
	}
	if len(b.below) > 0 && len(names) > 1 {
		text += ", each with its own"
	}
	if b.note != "" {
		text += ": " + b.note
	}
	return text
}
