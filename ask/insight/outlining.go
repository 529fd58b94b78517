package insight

import (
	"math"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
)

// outlining makes the lines of an Outline. There may be as many as objects in a cluster, so they
// are found by the places of the objects in the graph, and what is alike of many is made once.
type outlining struct {
	*Outline
	*treeing
	at    []*Line // by the handles of objects, which stay good: nothing comes into the graph meanwhile
	under []int   // by handles: the line below which an object was met last, by its ID plus one
	room  []Line  // for further ones

	kind  schema.GroupResource // of the object that was met last,
	named string               // and how it is told
	ages  map[int64]string     // by the second in which objects were made
}

// manyLines is for how many lines room is made at once.
const manyLines = 256

func newOutlining(w *World, asked types.UID, now time.Time) *outlining {
	most := w.Graph.MostHandle() + 1
	return &outlining{
		Outline: &Outline{}, treeing: &treeing{world: w, now: now, asked: asked},
		at: make([]*Line, most), under: make([]int, most), ages: map[int64]string{},
	}
}

// lineOf is that of a uid; nil if it has none.
func (l *outlining) lineOf(uid types.UID) *Line {
	if at := l.world.Graph.Handle(uid); at != 0 && int(at) < len(l.at) {
		return l.at[at]
	}
	return nil
}

// add adds a line below another.
func (l *outlining) add(line, parent *Line) *Line {
	line.ID, line.parent = len(l.lines), parent
	l.lines = append(l.lines, line)
	if parent != nil {
		parent.below = append(parent.below, line)
	}
	return line
}

// grow adds lines for all that hangs below one, as Tree has it: where something was met before, it
// is only named.
func (l *outlining) grow(line *Line) {
	l.at[line.at] = line
	views := l.world.Graph.SomeDependents(line.UID, math.MaxInt)
	all := make([]*Line, 0, len(views))
	for i := range views {
		d := &views[i]
		at := l.world.Graph.Handle(d.UID)
		if l.under[at] == line.ID+1 || !l.ownedBy(d, line.UID) {
			continue // it refers to the object twice, or in vain
		}
		l.under[at] = line.ID + 1
		all = append(all, l.line(d, at, line))
	}
	slices.SortFunc(all, func(a, b *Line) int { return byName(&a.Object, &b.Object) })
	line.below = slices.Grow(line.below, len(all))
	for _, d := range all {
		if l.at[d.at] != nil {
			d.Node = Node{Object: d.Object, Again: true, Asked: d.Asked}
			l.add(d, line)
			continue
		}
		l.grow(l.add(d, line))
	}
}

// line is one of an object, which is not added yet. from is the line of the owner below which it
// hangs; nil for the first.
func (l *outlining) line(v *graph.View, at graph.Handle, from *Line) *Line {
	if len(l.room) == 0 {
		l.room = make([]Line, manyLines)
	}
	line := &l.room[0]
	l.room = l.room[1:]
	if v.Kind != l.kind {
		l.kind, l.named = v.Kind, v.Kind.String()
	}
	line.at = at
	line.Node = Node{
		Object: Object{Kind: l.named, Namespace: v.Namespace, Name: v.Name, UID: v.UID},
		Lost:   l.lost(v), State: stateOf(v), Asked: v.UID == l.asked, Finalizers: v.Finalizers, Age: l.age(at),
	}
	if from != nil {
		line.owned(v, from.UID)
	}
	return line
}

// age is that of World.age.
func (l *outlining) age(at graph.Handle) string {
	m := l.world.metaAt(at)
	if m == nil {
		return ""
	}
	made := m.CreationTimestamp.Unix()
	age, ok := l.ages[made]
	if !ok {
		age = ageOf(m, l.now)
		l.ages[made] = age
	}
	return age
}
