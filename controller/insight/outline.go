package insight

import (
	"cmp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
)

// Outline is an object with all that hangs below it, as lines that can be shown some at a time, and what the plan of its
// delete says about each.
type Outline struct {
	Plan  *Plan
	lines []*Line // by ID; the first is the object
}

// Line is an object in an Outline, or several siblings that are of one kind and fare alike.
type Line struct {
	Node
	ID int `json:"id"`
	// Siblings is how many objects the line stands for; 0: it is one object.
	Siblings int `json:"siblings,omitempty"`
	// Symbol, Outcome, Note and Step are what the plan says; empty where it has nothing to say about the object.
	Symbol  string  `json:"symbol,omitempty"`
	Outcome Outcome `json:"outcome,omitempty"`
	Note    string  `json:"note,omitempty"`
	Step    int     `json:"step,omitempty"`
	// Below is how many lines hang directly below it; Goes how many objects are deleted, of it and all that hangs below it.
	Below int `json:"below,omitempty"`
	Goes  int `json:"goes,omitempty"`

	parent *Line
	below  []*Line
}

// manySiblings is how many lines may hang below one before those that are alike become one.
const manySiblings = 20

// Outline plays the deletion of an object, and lays the plan over the tree of what hangs below it. The World is used up by it.
// False if there is no such object.
func (w *World) Outline(uid types.UID, d Deletion, now time.Time) (*Outline, bool) {
	top := w.Tree(uid, Down, now)
	if len(top) == 0 {
		return nil, false
	}
	d.Roots = []types.UID{uid}
	l := &outlining{world: w, now: now, at: map[types.UID]*Line{}, Outline: &Outline{Plan: w.Plan(d)}}
	l.take(top[0], nil)
	l.lay()
	l.count()
	for _, line := range l.lines {
		l.group(line)
	}
	return l.Outline, true // without what it was made from
}

type outlining struct {
	*Outline
	world *World
	now   time.Time
	at    map[types.UID]*Line
}

func (l *outlining) add(n Node, parent *Line) *Line {
	line := &Line{Node: n, ID: len(l.lines), parent: parent}
	line.Dependents = nil
	l.lines = append(l.lines, line)
	if parent != nil {
		parent.below = append(parent.below, line)
	}
	if !n.Again {
		l.at[n.UID] = line
	}
	return line
}

// take makes lines of a tree, owners before their dependents.
func (l *outlining) take(n *Node, parent *Line) {
	line := l.add(*n, parent)
	for _, d := range n.Dependents {
		l.take(d, line)
	}
}

// lay puts the plan over the lines. What goes without hanging below the object in the tree gets a line of its own: below an
// owner of it that goes, too; or else below what takes it along.
func (l *outlining) lay() {
	var rest []*Item
	waiting := map[types.UID]bool{}
	for _, i := range l.Plan.Items {
		if line := l.at[i.UID]; line != nil {
			line.tell(i)
		} else {
			rest, waiting[i.UID] = append(rest, i), true
		}
	}
	root := l.lines[0]
	below := map[types.UID][]*Item{}
	for _, i := range rest {
		parent := root.UID
		if l.at[i.via] != nil {
			parent = i.via
		}
		for _, o := range i.owners {
			if l.at[o] != nil || waiting[o] {
				parent = o
				break
			}
		}
		below[parent] = append(below[parent], i)
	}
	hang := func(i *Item, parent *Line) {
		if l.at[i.UID] == nil {
			l.add(l.world.nodeOf(i, l.now), parent).tell(i)
		}
	}
	reach := func(from int) { // all that hangs below lines, new ones among them
		for ; from < len(l.lines); from++ {
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
func (w *World) nodeOf(i *Item, now time.Time) Node {
	m := w.metaAt(i.at)
	n := Node{Object: i.Object, Age: ageOf(m, now)}
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

// group sorts what hangs below a line, what needs attention first, and makes one line of those that are alike where there are
// many.
func (l *outlining) group(line *Line) {
	order := map[string]int{"!": 0, "?": 1, "~": 2, "-": 3, "": 4}
	slices.SortStableFunc(line.below, func(a, b *Line) int {
		return cmp.Or(cmp.Compare(order[a.Symbol], order[b.Symbol]), strings.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name))
	})
	if len(line.below) <= manySiblings {
		return
	}
	type like struct {
		symbol, kind, state string
		again               bool
	}
	likeOf := func(d *Line) like { return like{d.Symbol, d.Kind, d.State, d.Again} }
	many := map[like]int{}
	for _, d := range line.below {
		many[likeOf(d)]++
	}
	groups := map[like]*Line{}
	var grouped []*Line
	for _, d := range line.below {
		key := likeOf(d)
		if many[key] == 1 {
			grouped = append(grouped, d)
			continue
		}
		g := groups[key]
		if g == nil {
			g = &Line{ID: len(l.lines), Symbol: d.Symbol, Outcome: d.Outcome, parent: line}
			g.Kind, g.State = d.Kind, d.State
			groups[key], l.lines, grouped = g, append(l.lines, g), append(grouped, g)
		}
		g.below = append(g.below, d)
		g.Siblings, g.Below, g.Goes = g.Siblings+1, g.Below+1, g.Goes+d.Goes
		d.parent = g
	}
	line.below, line.Below = grouped, len(grouped)
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

// Cells are the lines that are wide enough to be seen, from the object on. Those that are not are room in the cell above them.
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

// Link is a reference from a dependent to its owner, between objects of a Neighbourhood.
type Link struct {
	Owner     int  `json:"owner"`
	Dependent int  `json:"dependent"`
	Blocks    bool `json:"blocks,omitempty"`
}

// Neighbourhood are the objects nearest below one.
type Neighbourhood struct {
	Objects []*Line `json:"objects"`
	Links   []Link  `json:"links"`
	Left    int     `json:"left,omitempty"` // how many further ones are not among them
}

// Near is the neighbourhood of the object: at most so many, the nearest first.
func (o *Outline) Near(most int) Neighbourhood {
	var n Neighbourhood
	in := map[types.UID]int{}
	total := 0
	for _, line := range o.lines {
		if line.Siblings == 0 && !line.Again {
			total++
		}
	}
	todo := []*Line{o.Root()}
	for len(todo) > 0 && len(n.Objects) < most {
		line := todo[0]
		todo = todo[1:]
		if line.Siblings == 0 && !line.Again {
			in[line.UID] = line.ID
			n.Objects = append(n.Objects, line)
		}
		todo = append(todo, line.below...)
	}
	for _, line := range o.lines {
		id, drawn := in[line.UID]
		parent := line.parent
		for parent != nil && parent.Siblings > 0 {
			parent = parent.parent
		}
		if line.Siblings > 0 || !drawn || parent == nil {
			continue
		}
		if _, ok := in[parent.UID]; ok {
			n.Links = append(n.Links, Link{Owner: parent.ID, Dependent: id, Blocks: line.Blocks})
		}
	}
	n.Left = total - len(n.Objects)
	return n
}
