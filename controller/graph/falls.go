package graph

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Fallen is how many objects of a kind fall with something, and a few of their names.
type Fallen struct {
	Kind  schema.GroupResource
	Count int
	Names []string // up to three, sorted; namespace/name where the namespace is not understood
}

// someNames is how many names tell a reader what it is about.
const someNames = 3

// Falls counts what falls when an object is deleted with its dependents: every object that depends on it
// and has no reference left that keeps it. Dependents of spared kinds lose their reference to the object, and
// stay if they have no other; further down nothing is spared. It is the least set for which that holds, as
// collectors find it: in a cycle that something outside leads to, nobody goes first.
//
// The names are the first three. False: it is at least that much. The object is not in the graph, or a
// kind that may hold dependents is not listed yet. Kinds that fail to list, or may not be listed, do not
// count for that.
//
// It costs a step for each reference of what falls, and of what loses an owner and stays.
func (g *Graph) Falls(uid types.UID, spared func(schema.GroupResource) bool) ([]Fallen, bool) {
	return g.FallsWithin(uid, spared, 0)
}

// FallsWithin is Falls that stops counting after so many references, and says then that it is at least that much; 0 is no
// bound.
func (g *Graph) FallsWithin(uid types.UID, spared func(schema.GroupResource) bool, most int) ([]Fallen, bool) {
	entryID := g.find(uid)
	if entryID == 0 || g.entries.at(entryID).node == 0 {
		return nil, false
	}
	root := g.nodes.at(g.entries.at(entryID).node)
	complete := g.holding(false, g.slots[root.slot].Namespaced) == ""
	f := fall{
		g: g, root: entryID, most: most, namespace: root.namespace, spared: spared, spares: map[uint32]bool{},
		left: map[uint32]int32{}, fallen: map[uint32]*Fallen{},
	}
	for id := g.entries.at(entryID).node; id != 0; id = g.nodes.at(id).next {
		f.begin(id)
	}
	f.run()
	return f.sorted(), complete && !f.spent()
}

// fall is how far a count has come.
type fall struct {
	g         *Graph
	root      uint32 // entry of the object whose own dependents are spared
	namespace uint32 // of what is deleted
	spared    func(schema.GroupResource) bool
	spares    map[uint32]bool  // by slot: what spared said
	left      map[uint32]int32 // by node that lost an owner: references that still keep it; 0: it falls
	fallen    map[uint32]*Fallen
	falls     func(id uint32) // is told of each; nil: nobody
	todo      []uint32        // nodes that fall, whose dependents have not heard of it
	most      int             // references that are looked at; 0: all
	looked    int             // references that were
}

// spent tells whether no more may be looked at.
func (f *fall) spent() bool { return f.most > 0 && f.looked >= f.most }

// begin is with a node that falls whoever keeps it.
func (f *fall) begin(id uint32) {
	f.left[id] = 0
	if !f.g.leavesOrphans(id) {
		f.todo = append(f.todo, id)
	}
}

func (f *fall) run() {
	for len(f.todo) > 0 && !f.spent() {
		id := f.todo[len(f.todo)-1]
		f.todo = f.todo[:len(f.todo)-1]
		f.drop(id)
	}
}

// drop takes an owner from all who depend on it.
func (f *fall) drop(owner uint32) {
	g := f.g
	for c := g.entries.at(g.nodes.at(owner).entry).claim; c != 0; c = g.claims.at(c).next {
		claim := g.claims.at(c)
		if claim.owner != owner {
			continue
		}
		for _, d := range claim.dependents {
			if f.spent() {
				return
			}
			f.looked++
			f.lose(d.node, claim)
		}
	}
}

// lose takes one reference from a node. Where it is spared, those to the root are taken off: it goes as its other owners
// do, and stays if it has none.
func (f *fall) lose(id uint32, c *claim) {
	n := f.g.nodes.at(id)
	left, seen := f.left[id]
	spared := f.spare(n.slot)
	switch {
	case seen && left == 0:
		return
	case !seen:
		left = f.g.keeping(n)
		if spared {
			gone, kept := f.toRoot(n)
			if gone == len(n.owners) {
				return
			}
			left -= kept
		}
	}
	if c.verdict == present && (!spared || c.entry != f.root) {
		left--
	}
	f.left[id] = left
	if left > 0 {
		return
	}
	f.count(n)
	if f.falls != nil {
		f.falls(id)
	}
	if !f.g.leavesOrphans(id) && f.g.propagation(n) != metav1.DeletePropagationOrphan {
		f.todo = append(f.todo, id)
	}
}

// keeping counts the references that keep a node: all but those to owners that are absent, or wait for
// their dependents. What is in doubt keeps; so does an owner that lets go, since the reference to it is
// taken off before anything is collected.
func (g *Graph) keeping(n *node) int32 {
	t := g.tally(n)
	return int32(len(n.owners) - t[absent] - t[waiting])
}

// toRoot counts the references of a node to what is deleted, and those of them that keep it.
func (f *fall) toRoot(n *node) (all int, keep int32) {
	for _, e := range n.owners {
		if c := f.g.claims.at(e.claim); c.entry == f.root {
			all++
			if c.verdict != absent && c.verdict != waiting {
				keep++
			}
		}
	}
	return all, keep
}

func (f *fall) spare(slot uint32) bool {
	if f.spared == nil {
		return false
	}
	yes, known := f.spares[slot]
	if !known {
		yes = f.spared(f.g.slots[slot].GroupResource())
		f.spares[slot] = yes
	}
	return yes
}

func (f *fall) count(n *node) {
	of := f.fallen[n.slot]
	if of == nil {
		of = &Fallen{Kind: f.g.slots[n.slot].GroupResource()}
		f.fallen[n.slot] = of
	}
	of.Count++
	in := "" // the namespace, where it is another one
	if n.namespace != f.namespace {
		in = f.g.namespaces.val(n.namespace)
	}
	name := nsName(in, n.name)
	at, _ := slices.BinarySearch(of.Names, name)
	if at < someNames {
		of.Names = slices.Insert(of.Names, at, name)
		of.Names = of.Names[:min(len(of.Names), someNames)]
	}
}

func (f *fall) sorted() []Fallen {
	var out []Fallen
	for _, of := range f.fallen {
		out = append(out, *of)
	}
	return sortFallen(out)
}

func sortFallen(all []Fallen) []Fallen {
	slices.SortFunc(all, func(a, b Fallen) int { return cmp.Compare(a.Kind.String(), b.Kind.String()) })
	return all
}
