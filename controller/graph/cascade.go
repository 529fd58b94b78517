package graph

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Counted is how many objects of a kind there are, or would be deleted with something, and a few of
// their names.
type Counted struct {
	Kind  schema.GroupResource
	Count int
	Names []string // up to three, sorted; namespace/name where the namespace is not understood
}

// someNames is how many names tell a reader what it is about.
const someNames = 3

// Cascade counts what would also be deleted if an object is deleted with its dependents: every
// object that depends on it and has no reference left that keeps it (see stays). Dependents of kept
// kinds lose their reference to the object, and stay if they have no other; further down all are
// deleted. It is the least set for which that holds, as collectors find it: in a cycle that
// something outside leads to, none goes first. With a namespace among it goes what it holds, with a
// definition all of its kind; not with the object itself: Filled and Instances count that.
//
// The names are the first three. False: it is at least that much. The object is not in the graph,
// or a kind that may hold dependents is not listed yet. Kinds that fail to list, or may not be
// listed, do not count for that.
//
// It costs a step for each reference of what would be deleted, and of what loses an owner and
// stays. Where a definition is among it, it is one for each object in the graph.
func (g *Graph) Cascade(uid types.UID, kept func(schema.GroupResource) bool) ([]Counted, bool) {
	counted, known, _ := g.CascadeWithin(Search{UID: uid, Kept: kept}, 0)
	return counted, known
}

// Goes is the object of a Search, and what goes with it, each as the graph saw it last. Of the
// namespace of a Search that is all that is in it, also what Kubernetes itself puts there.
func (g *Graph) Goes(s Search) (all []Ref, complete bool) {
	entryID := g.find(s.UID)
	if entryID == 0 || g.entries.at(entryID).node == 0 {
		return nil, false
	}
	f := cascade{g: g, root: entryID, kept: s.Kept, keeps: map[uint32]bool{}, left: map[uint32]int32{},
		usual: s.Namespace != ""}
	all = []Ref{g.refOf(g.entries.at(entryID).node)}
	f.found = func(id uint32) {
		f.along(g.nodes.at(id))
		all = append(all, g.refOf(id))
	}
	return all, f.play(s)
}

// CascadeWithin is Cascade of all that a Search says, which stops counting after so many references
// and says then that it did; 0 is no bound.
func (g *Graph) CascadeWithin(s Search, most int) (all []Counted, known, cut bool) {
	entryID := g.find(s.UID)
	alone := s.Namespace == "" && s.Instances.Empty()
	if alone && (entryID == 0 || g.entries.at(entryID).node == 0) {
		return nil, false, false
	}
	f := cascade{
		g: g, root: entryID, most: most, namespace: g.namespaces.ids[s.Namespace], kept: s.Kept, keeps: map[uint32]bool{},
		left: map[uint32]int32{}, counted: map[uint32]*Counted{},
	}
	f.found = func(id uint32) { f.along(g.nodes.at(id)) }
	if alone {
		f.namespace = g.nodes.at(g.entries.at(entryID).node).namespace
	}
	known = f.play(s)
	return f.sorted(), known && !f.spent(), f.spent()
}

// play has go what a Search says, and all that goes with it. False: there may be more, since a kind
// is not listed yet, or the object is not in the graph and something depends on it.
func (f *cascade) play(s Search) (known bool) {
	onlyNamespaced := f.g.begin(f, f.root)
	if !s.Instances.Empty() {
		f.instances(s.Instances)
	}
	if s.Namespace != "" {
		f.content(s.Namespace)
	}
	f.run()
	return f.g.knows(f.root, onlyNamespaced && s.Namespace == "" && s.Instances.Empty())
}

// cascade is how far a count has come.
type cascade struct {
	g         *Graph
	root      uint32 // entry of the object whose own dependents of some kinds are kept
	namespace uint32 // of what is deleted
	kept      func(schema.GroupResource) bool
	keeps     map[uint32]bool     // by slot: what kept said
	left      map[uint32]int32    // by node that lost an owner: references that still keep it; 0: it is deleted, too
	counted   map[uint32]*Counted // nil: nothing is counted
	found     func(id uint32)     // called with each; may be nil
	todo      []uint32            // nodes that are deleted, whose dependents have not heard of it
	most      int                 // references, and objects that go along, that are looked at; 0: all
	looked    int                 // those that were
	byKind    [][]uint32          // by slot: its nodes; nil before a definition is deleted
	usual     bool                // what Kubernetes itself puts into each namespace goes, too
}

// spent tells whether no more may be looked at.
func (f *cascade) spent() bool { return f.most > 0 && f.looked >= f.most }

// begin is with a node that is deleted whoever keeps it.
func (f *cascade) begin(id uint32) {
	f.left[id] = 0
	if !f.g.leavesOrphans(id) {
		f.todo = append(f.todo, id)
	}
}

func (f *cascade) run() {
	for len(f.todo) > 0 && !f.spent() {
		id := f.todo[len(f.todo)-1]
		f.todo = f.todo[:len(f.todo)-1]
		f.drop(id)
	}
}

// drop takes an owner from all who depend on it.
func (f *cascade) drop(owner uint32) {
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

// lose takes one reference from a node. Where it is kept, those to the root are taken off: it goes
// as its other owners do, and stays if it has none.
func (f *cascade) lose(id uint32, c *claim) {
	n := f.g.nodes.at(id)
	left, seen := f.left[id]
	kept := f.keepsKind(n.slot)
	switch {
	case seen && left == 0:
		return
	case !seen:
		left = f.g.keeping(n)
		if kept {
			gone, kept := f.toRoot(n)
			if gone == len(n.owners) {
				return
			}
			left -= kept
		}
	}
	if f.g.stays(c) && (!kept || c.entry != f.root) {
		left--
	}
	f.left[id] = left
	if left > 0 {
		return
	}
	f.goes(id)
}

// gone tells whether a node is deleted, as far as is known.
func (f *cascade) gone(id uint32) bool {
	left, seen := f.left[id]
	return seen && left == 0
}

// goes is with a node that is deleted, too: it is counted, and told of, and its dependents will
// hear of it.
func (f *cascade) goes(id uint32) {
	n := f.g.nodes.at(id)
	f.left[id] = 0
	f.count(n)
	if f.found != nil {
		f.found(id)
	}
	if !f.g.leavesOrphans(id) && f.g.propagation(n) != metav1.DeletePropagationOrphan {
		f.todo = append(f.todo, id)
	}
}

// keeping counts the references that keep a node.
func (g *Graph) keeping(n *node) (keep int32) {
	for _, e := range n.owners {
		if g.stays(g.claims.at(e.claim)) {
			keep++
		}
	}
	return keep
}

// stays tells whether an owner keeps its dependents: not one that is absent, that waits for them,
// that is being deleted, or that is about to be because its own owners are absent. What is in doubt
// keeps; so does an owner that lets go, since the reference to it is taken off before anything is
// collected.
func (g *Graph) stays(c *claim) bool {
	if c.verdict != present || c.owner == 0 {
		return c.verdict != absent && c.verdict != waiting
	}
	owner := g.nodes.at(c.owner)
	return owner.flags&deleting == 0 && (len(owner.owners) == 0 || slices.ContainsFunc(owner.owners, func(e edge) bool {
		v := g.claims.at(e.claim).verdict
		return v != absent && v != waiting
	}))
}

// toRoot counts the references of a node to what is deleted, and those of them that keep it.
func (f *cascade) toRoot(n *node) (all int, keep int32) {
	for _, e := range n.owners {
		if c := f.g.claims.at(e.claim); c.entry == f.root {
			all++
			if f.g.stays(c) {
				keep++
			}
		}
	}
	return all, keep
}

func (f *cascade) keepsKind(slot uint32) bool {
	if f.kept == nil {
		return false
	}
	yes, known := f.keeps[slot]
	if !known {
		yes = f.kept(f.g.slots[slot].GroupResource())
		f.keeps[slot] = yes
	}
	return yes
}

func (f *cascade) count(n *node) {
	if f.counted == nil {
		return
	}
	of := f.counted[n.slot]
	if of == nil {
		of = &Counted{Kind: f.g.slots[n.slot].GroupResource()}
		f.counted[n.slot] = of
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

func (f *cascade) sorted() []Counted {
	var out []Counted
	for _, of := range f.counted {
		out = append(out, *of)
	}
	return sortCounted(out)
}

func sortCounted(all []Counted) []Counted {
	slices.SortFunc(all, func(a, b Counted) int { return cmp.Compare(a.Kind.String(), b.Kind.String()) })
	return all
}
