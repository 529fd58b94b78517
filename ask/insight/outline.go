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

// Outline is an object with all that is below it, as lines that can be read in parts, with what the
// plan of its delete says about each.
type Outline struct {
	Plan  *Plan
	lines []*Line // by ID; the first is the object
}

// Line is an object in an Outline, or several siblings of one kind that fare alike.
type Line struct {
	*Node
	ID int `json:"id"`
	// Siblings is how many objects the line stands for; 0 means that it is one object.
	Siblings int `json:"siblings,omitempty"`
	// Symbol, Outcome, Note and Step are what the plan says about the object; empty if it says
	// nothing.
	Symbol  string  `json:"symbol,omitempty"`
	Outcome Outcome `json:"outcome,omitempty"`
	Note    string  `json:"note,omitempty"`
	Step    int     `json:"step,omitempty"`
	// Below is how many lines are directly below. Goes is how many objects are deleted of this line
	// and all below.
	Below int `json:"below,omitempty"`
	Goes  int `json:"goes,omitempty"`

	parent *Line
	below  []*Line
}

// manySiblings is how many lines may be below one before alike ones are merged.
const manySiblings = 20

// outlining makes the lines of an Outline.
type outlining struct {
	*Outline
	world *World
	now   time.Time
	of    map[types.UID]*Line // without those that are Again
}

// Outline plays the deletion of an object, and merges the plan with the tree below it. It returns
// false if there is no such object. The World must not be used afterwards.
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
	return l.Outline, true // not l, which would keep the World
}

// grow adds a line for a node below parent, and lines for all below the node.
func (l *outlining) grow(n *Node, parent *Line) {
	line := l.add(n, parent)
	dependents := n.Dependents
	n.Dependents = nil // they are lines
	for _, d := range dependents {
		l.grow(d, line)
	}
}

// add adds a line for a node below parent.
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

// lay merges the plan into the lines. An object of the plan that is not in the tree gets a line
// below one of its owners; if none has a line, below the namespace or definition that it is deleted
// with, or else below the root.
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
	reach := func(from int) { // adds what is below lines, also below those that it adds
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

// nodeOf returns the node for the object of an item, as it was read.
func (w *World) nodeOf(i *Item, now time.Time) *Node {
	m := w.Meta(i.UID)
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

// count sets Below and Goes. It goes backward, because lines come after the one that they are
// below.
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

// rank orders lines among their siblings: those first that need attention.
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

// bySight compares lines for display.
func bySight(a, b *Line) int {
	if n := rank(a.Symbol) - rank(b.Symbol); n != 0 {
		return n
	}
	if n := strings.Compare(a.Kind, b.Kind); n != 0 {
		return n
	}
	return cmp.Or(strings.Compare(a.Name, b.Name), a.ID-b.ID)
}

// like is what lines have in common that are merged.
type like struct {
	symbol, kind, state string
	again               bool
}

func (line *Line) like() like { return like{line.Symbol, line.Kind, line.State, line.Again} }

// group sorts the lines below a line. If there are many, it merges those that are alike.
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

// alikes yields runs of alike lines. Sorted lines have few runs.
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

// Root returns the line of the object that the outline is about.
func (o *Outline) Root() *Line { return o.lines[0] }

// Lines returns count of the lines directly below a line, beginning at from; nil if there is no
// such line.
func (o *Outline) Lines(below, from, count int) []*Line {
	if below < 0 || below >= len(o.lines) {
		return nil
	}
	all := o.lines[below].below
	from = min(max(from, 0), len(all))
	return all[from:min(len(all), from+max(count, 0))]
}
