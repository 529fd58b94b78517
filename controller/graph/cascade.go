package graph

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Counted is a number of objects of one kind, with a few of their names.
type Counted struct {
	Kind  schema.GroupResource
	Count int
	Names []string // up to three, sorted; namespace/name where the namespace is not implied
}

// someNames is how many names of a kind are shown.
const someNames = 3

// Goes returns the object of a Search and what goes with it, each as the graph saw it last. For the
// namespace of a Search that includes what Kubernetes itself puts there.
func (g *Graph) Goes(s Search) (all []Ref, complete bool) {
	root := g.newest(s.UID)
	if root == 0 {
		return nil, false
	}
	f := g.simulate(s, 0)
	f.usual = s.Namespace != ""
	all = []Ref{g.refOf(root)}
	f.found = func(id uint32) {
		f.addContents(g.nodes.at(id))
		all = append(all, g.refOf(id))
	}
	return all, f.play()
}

// Cascade counts what would also be deleted with a Search: every object that depends on it and has
// no reference left that keeps it (see stays). Dependents of kept kinds lose their reference to the
// object, and stay if they have no other; further down all are deleted. Objects that own each other
// keep each other, as for a collector. A namespace among what goes takes its contents with it, and a
// definition its objects. What the object itself contains is not counted: Filled and Instances do
// that.
//
// The names are the first three. known is false if there may be more: the object is not in the
// graph, or a kind that may hold dependents is not listed yet. Kinds that fail to list, or may not
// be listed, do not matter for that. It stops after most references, and cut is true then; 0 is no
// bound.
//
// The cost is a step for each reference of what would be deleted or would lose an owner; with a
// definition among it, a step for each object in the graph.
func (g *Graph) Cascade(s Search, most int) (all []Counted, known, cut bool) {
	root := g.newest(s.UID)
	alone := s.Namespace == "" && s.Instances.Empty()
	if alone && root == 0 {
		return nil, false, false
	}
	f := g.simulate(s, most)
	f.namespace, f.counted = g.namespaces.ids[s.Namespace], map[uint32]*Counted{}
	f.found = func(id uint32) { f.addContents(g.nodes.at(id)) }
	if alone {
		f.namespace = g.nodes.at(root).namespace
	}
	known = f.play()
	return f.sorted(), known && !f.spent(), f.spent()
}

// simulate returns a deletion that has not begun.
func (g *Graph) simulate(s Search, most int) *cascade {
	f := &cascade{Search: s, g: g, root: g.find(s.UID), most: most, left: map[uint32]int32{}}
	f.keeps = g.perKind(s.Kept)
	return f
}

// perKind returns what f says of the kind of a slot, and asks it only once for each.
func (g *Graph) perKind(f func(schema.GroupResource) bool) func(slot uint32) bool {
	if f == nil {
		return func(uint32) bool { return false }
	}
	return once(func(slot uint32) bool { return f(g.slots[slot].GroupResource()) })
}

// once returns f, but calls it only once for each value.
func once(f func(uint32) bool) func(uint32) bool {
	said := map[uint32]bool{}
	return func(v uint32) bool {
		yes, known := said[v]
		if !known {
			yes = f(v)
			said[v] = yes
		}
		return yes
	}
}

// play marks as deleted what the Search says, and all that goes with it. known is false if there
// may be more: a kind is not listed yet, or the object is not in the graph and something depends on
// it.
func (f *cascade) play() (known bool) {
	onlyNamespaced := f.Namespace == "" && f.Instances.Empty()
	for id, n := range f.g.nodesOf(f.root) {
		onlyNamespaced = onlyNamespaced && f.g.slots[n.slot].Namespaced
		f.begin(id)
	}
	f.instances(f.Instances)
	f.content(f.Namespace)
	f.run()
	return f.g.knows(f.root, onlyNamespaced)
}

// cascade is a simulated deletion, as far as it has come.
type cascade struct {
	Search
	g         *Graph
	root      uint32              // entry of the deleted object: its own dependents of kept kinds stay
	namespace uint32              // of what is deleted
	keeps     func(uint32) bool   // whether the kind of a slot is kept
	left      map[uint32]int32    // by node that lost an owner: references that still keep it; 0: it is deleted, too
	counted   map[uint32]*Counted // nil: nothing is counted
	found     func(id uint32)     // called with each node that goes; may be nil
	todo      []uint32            // deleted nodes whose dependents are not visited yet
	most      int                 // how many references and contents are looked at; 0: all
	looked    int                 // how many were
	usual     bool                // what Kubernetes itself puts into each namespace goes, too
}

// spent reports whether no more may be looked at.
func (f *cascade) spent() bool { return f.most > 0 && f.looked >= f.most }

// begin marks a node as deleted, whoever owns it, and queues its dependents.
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

// drop removes an owner from all that depend on it.
func (f *cascade) drop(owner uint32) {
	g := f.g
	for _, c := range g.claimsOn(g.nodes.at(owner).entry) {
		if c.owner != owner {
			continue
		}
		for _, d := range c.dependents {
			if f.spent() {
				return
			}
			f.looked++
			f.lose(d.node, c)
		}
	}
}

// lose removes one reference from a node. A node of a kept kind loses all that are to the root at
// once: it goes as its other owners do, and stays if it has none.
func (f *cascade) lose(id uint32, c *claim) {
	n := f.g.nodes.at(id)
	left, seen := f.left[id]
	kept := f.keeps(n.slot)
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

// gone reports whether a node is marked as deleted.
func (f *cascade) gone(id uint32) bool {
	left, seen := f.left[id]
	return seen && left == 0
}

// goes marks a node as deleted, counts it, passes it to found and queues its dependents.
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

// stays reports whether an owner keeps its dependents. It does not if it is absent, waits for them,
// is being deleted, or is about to be because its own owners are absent or wait. An owner in doubt
// keeps. So does one that orphans: the reference to it is removed before anything is collected.
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

// toRoot counts the references of a node to the root, and those of them that keep it.
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

// countOf returns the count of a kind.
func (f *cascade) countOf(slotID uint32) *Counted {
	of := f.counted[slotID]
	if of == nil {
		of = &Counted{Kind: f.g.slots[slotID].GroupResource()}
		f.counted[slotID] = of
	}
	return of
}

func (f *cascade) count(n *node) {
	if f.counted == nil {
		return
	}
	of := f.countOf(n.slot)
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
