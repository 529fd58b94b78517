package insight

import (
	"cmp"
	"iter"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
)

// Outline is an object with all that hangs below it, as lines that can be shown some at a time, and
// what the plan of its delete says about each.
type Outline struct {
	Plan  *Plan
	lines []*Line // by ID; the first is the object
}

// Line is an object in an Outline, or several siblings that are of one kind and fare alike.
type Line struct {
	*Node
	ID int `json:"id"`
	// Siblings is how many objects the line stands for; 0: it is one object.
	Siblings int `json:"siblings,omitempty"`
	// Symbol, Outcome, Note and Step are what the plan says; empty where it has nothing to say
	// about the object.
	Symbol  string  `json:"symbol,omitempty"`
	Outcome Outcome `json:"outcome,omitempty"`
	Note    string  `json:"note,omitempty"`
	Step    int     `json:"step,omitempty"`
	// Below is how many lines hang directly below it; Goes how many objects are deleted, of it and
	// all that hangs below it.
	Below int `json:"below,omitempty"`
	Goes  int `json:"goes,omitempty"`

	parent *Line
	below  []*Line
}

// manySiblings is how many lines may hang below one before those that are alike become one.
const manySiblings = 20

// outlining makes the lines of an Outline.
type outlining struct {
	*Outline
	world *World
	now   time.Time
	of    map[types.UID]*Line // those that are not Again
}

// Outline plays the deletion of an object, and lays the plan over the tree of what hangs below it.
// The World is used up by it. False if there is no such object.
func (w *World) Outline(uid types.UID, d Deletion, now time.Time) (*Outline, bool) {
	v, ok := w.Graph.Find(uid)
	if !ok {
		return nil, false
	}
	l := &outlining{Outline: &Outline{}, world: w, now: now, of: map[types.UID]*Line{}}
	l.grow((&treeing{world: w, now: now, asked: uid, met: map[types.UID]bool{}}).below(&v, nil), nil)
	d.Roots = []types.UID{uid}
	l.Plan = w.Plan(d)
	l.lay()
	l.count()
	for _, line := range l.lines {
		l.group(line)
	}
	return l.Outline, true // without what it was made from
}

// grow adds a line for an object below another, and for all that hangs below it.
func (l *outlining) grow(n *Node, parent *Line) {
	line := l.add(n, parent)
	dependents := n.Dependents
	n.Dependents = nil // they are lines
	for _, d := range dependents {
		l.grow(d, line)
	}
}

// add adds a line for an object below another.
func (l *outlining) add(n *Node, parent *Line) *Line {
	line := &Line{Node: n, ID: len(l.lines), parent: parent}
	l.lines = append(l.lines, line)
	if parent != nil {
		parent.below = append(parent.below, line)
	}
	if !n.Again {
		l.of[n.UID] = line
	}
	return line
}

// lay puts the plan over the lines. What goes without hanging below the object in the tree gets a
// line of its own: below an owner of it that goes, too; or else below what takes it along.
func (l *outlining) lay() {
	var rest []*Item
	waiting := map[types.UID]bool{}
	for _, i := range l.Plan.Items {
		if line := l.of[i.UID]; line != nil {
			line.tell(i)
		} else {
			rest, waiting[i.UID] = append(rest, i), true
		}
	}
	if len(rest) == 0 {
		return
	}
	root := l.lines[0]
	below := map[types.UID][]*Item{}
	for _, i := range rest {
		parent := root.UID
		if l.of[i.via] != nil {
			parent = i.via
		}
		for _, o := range i.owners {
			if l.of[o] != nil || waiting[o] {
				parent = o
				break
			}
		}
		below[parent] = append(below[parent], i)
	}
	hang := func(i *Item, parent *Line) {
		if l.of[i.UID] == nil {
			l.add(l.world.nodeOf(i, l.now), parent).tell(i)
		}
	}
	reach := func(from int) { // all that hangs below lines, new ones among them
		for ; from < len(l.lines) && len(below) > 0; from++ {
			line := l.lines[from]
			for _, i := range below[line.UID] {
				hang(i, line)
			}
			delete(below, line.UID)
		}
	}
	reach(0)
	for _, i := range rest { // a cycle
		from := len(l.lines)
		hang(i, root)
		reach(from)
	}
}

// nodeOf is the object of an item as it was read.
func (w *World) nodeOf(i *Item, now time.Time) *Node {
	m := w.metaAt(i.at)
	n := &Node{Object: i.Object, Age: ageOf(m, now)}
	if m != nil {
		n.Finalizers = m.Finalizers
		n.State = stateOf(&graph.View{
			Deleting:   m.DeletionTimestamp != nil,
			Foreground: m.DeletionTimestamp != nil && slices.Contains(m.Finalizers, metav1.FinalizerDeleteDependents),
			Orphaning:  m.DeletionTimestamp != nil && slices.Contains(m.Finalizers, metav1.FinalizerOrphanDependents),
		})
	}
	return n
}

func (line *Line) tell(i *Item) {
	line.Symbol, line.Outcome, line.Step = symbolOf(i), i.Outcome, i.Step
	line.Note = i.note(Style{})
}

// count tells of each line what hangs below it: lines stand behind the one that they hang below.
func (l *outlining) count() {
	for _, line := range slices.Backward(l.lines) {
		line.Below = len(line.below)
		if line.Outcome == Deleted || line.Outcome == Stuck {
			line.Goes++
		}
		if line.parent != nil {
			line.parent.Goes += line.Goes
		}
	}
}

// rank is where lines stand among their siblings: first what needs attention.
func rank(symbol string) int {
	switch symbol {
	case "!":
		return 0
	case "?":
		return 1
	case "~":
		return 2
	case "-":
		return 3
	}
	return 4
}

// bySight is the order in which lines are shown.
func bySight(a, b *Line) int {
	if n := rank(a.Symbol) - rank(b.Symbol); n != 0 {
		return n
	}
	if n := strings.Compare(a.Kind, b.Kind); n != 0 {
		return n
	}
	return cmp.Or(strings.Compare(a.Name, b.Name), a.ID-b.ID)
}

// like is what lines that become one have in common.
type like struct {
	symbol, kind, state string
	again               bool
}

func (line *Line) like() like { return like{line.Symbol, line.Kind, line.State, line.Again} }

// group sorts what hangs below a line, what needs attention first, and makes one line of those that
// are alike where there are many.
func (l *outlining) group(line *Line) {
	slices.SortFunc(line.below, bySight)
	if len(line.below) <= manySiblings {
		return
	}
	many := map[like]int{}
	for run := range alikes(line.below) {
		many[run[0].like()] += len(run)
	}
	groups := map[like]*Line{}
	var grouped []*Line
	for run := range alikes(line.below) {
		key := run[0].like()
		if many[key] == 1 {
			grouped = append(grouped, run[0])
			continue
		}
		g := groups[key]
		if g == nil {
			g = &Line{Node: &Node{Object: Object{Kind: key.kind}, State: key.state}, ID: len(l.lines),
				Symbol: key.symbol, Outcome: run[0].Outcome, parent: line}
			groups[key], l.lines, grouped = g, append(l.lines, g), append(grouped, g)
		}
		g.below = append(g.below, run...)
		g.Siblings, g.Below = g.Siblings+len(run), g.Below+len(run)
		for _, d := range run {
			g.Goes += d.Goes
			d.parent = g
		}
	}
	line.below, line.Below = grouped, len(grouped)
}

// alikes are lines that are alike and follow each other. Sorted as they are, these are few.
func alikes(all []*Line) iter.Seq[[]*Line] {
	return func(yield func([]*Line) bool) {
		for len(all) > 0 {
			first, n := all[0].like(), 1
			for n < len(all) && all[n].like() == first {
				n++
			}
			if !yield(all[:n]) {
				return
			}
			all = all[n:]
		}
	}
}

// Root is the line of the object that the outline is about.
func (o *Outline) Root() *Line { return o.lines[0] }

// Lines are some of the lines directly below one; nil if there is no such line.
func (o *Outline) Lines(below, from, count int) []*Line {
	if below < 0 || below >= len(o.lines) {
		return nil
	}
	all := o.lines[below].below
	from = min(max(from, 0), len(all))
	return all[from:min(len(all), from+max(count, 0))]
}

// Cell is a line in a drawing in which what goes with it has room by number.
type Cell struct {
	*Line
	Cells []*Cell `json:"cells,omitempty"`
}

// The bounds of a drawing of cells.
const (
	mostDeep   = 24
	mostCells  = 600
	leastShare = 400 // what is less than this part of all would be no wider than a hair
)

// Cells are the lines that are wide enough to be seen, from the object on. Those that are not are
// room in the cell above them.
func (o *Outline) Cells() *Cell {
	left := mostCells
	var cut func(line *Line, depth int) *Cell
	cut = func(line *Line, depth int) *Cell {
		left--
		c := &Cell{Line: line}
		if depth == mostDeep {
			return c
		}
		wide := slices.DeleteFunc(slices.Clone(line.below), func(d *Line) bool { return d.Goes == 0 || d.Goes*leastShare < o.Root().Goes })
		slices.SortStableFunc(wide, func(a, b *Line) int { return cmp.Compare(b.Goes, a.Goes) })
		for _, d := range wide {
			if left > 0 {
				c.Cells = append(c.Cells, cut(d, depth+1))
			}
		}
		return c
	}
	return cut(o.Root(), 0)
}
