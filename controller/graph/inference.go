package graph

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Conclusion is what an object is inferred to be garbage from, where no deletion of its owner was
// seen.
type Conclusion uint8

// The conclusions. Asked is no inference: the watch showed how an owner was deleted, or that it
// waits for its dependents.
const (
	Asked           Conclusion = iota
	OwnerNotFound              // a live read says that there is no such owner
	DefinitionGone             // the definition of the owner's kind was deleted, and all of its instances with it
	ReferenceEdited            // the reference was written into the object after its owner was deleted
)

var conclusionNames = [...]string{"asked", "owner-not-found", "definition-gone", "reference-edited"}

func (c Conclusion) String() string { return conclusionNames[c] }

// Inference is what a delete rests on if no owner was seen to be deleted. It is zero if one was.
type Inference struct {
	Conclusion Conclusion
	// Owners is the kind of the owner that is gone: of the first one, where owners of owners went.
	Owners schema.GroupResource
	// Inherited is true if the owner itself was collected because of the inference (Collecting).
	Inherited bool
}

func (i Inference) String() string {
	if i.Conclusion == Asked {
		return Asked.String()
	}
	s := i.Conclusion.String() + " of " + i.Owners.String()
	if i.Inherited {
		s += ", inherited"
	}
	return s
}

// cause is an Inference in four bytes: slot, conclusion, inherited. 0: Asked.
type cause uint32

func causeOf(slotID uint32, c Conclusion) cause { return cause(slotID<<3 | uint32(c)<<1) }

const inherited cause = 1

func (g *Graph) inferenceOf(c cause) Inference {
	if c == 0 {
		return Inference{}
	}
	return Inference{Conclusion: Conclusion(c >> 1 & 3), Owners: g.slots[c>>3].GroupResource(),
		Inherited: c&inherited != 0}
}

// causeOfDelete returns what the delete of an object rests on. One inferred reference is enough:
// without it the object would be kept. A cause of the object's own comes before an inherited one.
func (g *Graph) causeOfDelete(n *node) (found cause) {
	for _, e := range n.owners {
		var of cause
		switch c := g.claims.at(e.claim); {
		case c.verdict == waiting && g.causes[c.owner] != 0:
			of = g.causes[c.owner]
		case c.verdict != waiting && c.cause != 0:
			of = c.cause
		case e.bits&written != 0:
			of = causeOf(g.typeInfos[c.typ].slot, ReferenceEdited)
		}
		if of != 0 && of&inherited == 0 {
			return of
		}
		if found == 0 {
			found = of
		}
	}
	return found
}

// isOf reports whether the delete of an object rests on an inference about owners of a kind.
func (g *Graph) isOf(n *node, owners schema.GroupResource) bool {
	i := g.inferenceOf(g.causeOfDelete(n))
	return i.Conclusion != Asked && i.Owners == owners
}

// causeOfEnd returns what the deletion of a node's dependents rests on when the node ends.
func (g *Graph) causeOfEnd(id uint32, concluded bool) cause {
	slotID := g.nodes.at(id).slot
	switch c := g.causes[id]; {
	case c != 0:
		return c
	case g.slots[slotID].undefined, !g.slots[slotID].served:
		return causeOf(slotID, DefinitionGone)
	case concluded:
		return causeOf(slotID, OwnerNotFound)
	}
	return 0
}

// apply notes that an object is deleted because of an inference, which its dependents inherit.
func (ev Collecting) apply(g *Graph) {
	id := g.nodeIn(ev.Kind, ev.UID)
	slotID := g.slotIDs[ev.Inference.Owners]
	if id == 0 || slotID == 0 || ev.Inference.Conclusion == Asked {
		return
	}
	g.causes[id] = causeOf(slotID, ev.Inference.Conclusion) | inherited
}

// definitions is the kind whose objects define kinds.
var definitions = schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}

// define notes whether a kind's definition goes. Claims on objects that went before are revised:
// the watches of two kinds are not ordered.
func (g *Graph) define(name string, goes bool) {
	slotID := g.slotIDs[schema.ParseGroupResource(name)]
	if slotID == 0 || g.slots[slotID].undefined == goes {
		return
	}
	g.slots[slotID].undefined = goes
	if !goes {
		return
	}
	g.slots[slotID].hidden = nil
	g.incompleteChanged()
	g.claims.each(func(_ uint32, c *claim) {
		if c.looked == lookedAbsent && c.cause == 0 && g.typeInfos[c.typ].slot == slotID {
			c.cause = causeOf(slotID, DefinitionGone)
			g.markDependents(c)
		}
	})
}

// Weigh counts what goes with objects, themselves included, each once: all that has no other owner,
// the contents of namespaces, and the objects of definitions. The kinds with most objects come
// first. It returns false if it stopped after most references.
func (g *Graph) Weigh(most int, uids ...types.UID) ([]Counted, bool) {
	return g.weigh(most, uids, func(*node) {})
}

// weigh is Weigh, and shows each node that it visits. It does not visit the contents that it
// counts.
func (g *Graph) weigh(most int, uids []types.UID, show func(*node)) ([]Counted, bool) {
	f := g.simulate(Search{}, most)
	f.counted = map[uint32]*Counted{}
	f.found = func(id uint32) {
		n := g.nodes.at(id)
		f.countContents(n)
		show(n)
	}
	for _, uid := range uids {
		for id := range g.nodesOf(g.find(uid)) {
			if !f.gone(id) {
				f.goes(id)
			}
		}
	}
	f.run()
	all := f.sorted()
	slices.SortStableFunc(all, func(a, b Counted) int { return b.Count - a.Count })
	return all, !f.spent()
}

// countContents counts what goes with a node that is a namespace or a definition.
func (f *cascade) countContents(n *node) {
	g := f.g
	switch g.slots[n.slot].GroupResource() {
	case namespacesKind:
		if inv := g.inventories[g.namespaces.ids[n.name]]; inv != nil {
			for slotID, kind := range inv.kinds {
				f.countMany(slotID, len(kind.nodes)-int(kind.usual))
			}
		}
	case definitions:
		if slotID := g.slotIDs[schema.ParseGroupResource(n.name)]; slotID != 0 {
			f.countMany(slotID, g.slots[slotID].nodes)
		}
	}
}

// namespacesKind is the kind of namespaces.
var namespacesKind = schema.GroupResource{Resource: "namespaces"}

func (f *cascade) countMany(slotID uint32, n int) {
	if n > 0 {
		f.countOf(slotID).Count += n
	}
}

// Objects returns how many objects of a kind there are.
func (g *Graph) Objects(kind schema.GroupResource) int { return g.slots[g.slotIDs[kind]].nodes }

// Inferred is garbage whose delete rests on an inference about owners of one kind.
type Inferred struct {
	Ref
	Inference
	Why string
}

// InferredFrom returns garbage whose delete rests on an inference about owners of a kind. The
// cursor starts at 0, and the next one is 0 at the end. One call looks at some 1,000 references,
// and at all of the owner with which it ends. open counts owners of the kind that may yet turn out
// to be absent, and their dependents to be garbage.
func (g *Graph) InferredFrom(of schema.GroupResource, from uint32) (all []Inferred, open int, next uint32) {
	const most = 1000
	looked := 0
	for id := max(from, 1); id < g.claims.next; id++ {
		if looked >= most {
			return all, open, id
		}
		looked++
		c := g.claims.at(id)
		if c.entry == 0 {
			continue
		}
		if g.slots[g.typeInfos[c.typ].slot].GroupResource() == of && g.open(c) {
			open++
			looked += len(c.dependents)
		}
		if c.verdict != absent && c.verdict != waiting {
			continue
		}
		for _, d := range c.dependents {
			looked++
			n := g.nodes.at(d.node)
			if g.first(n, absent, waiting) != id || !g.isOf(n, of) { // the first tells of it
				continue
			}
			if a := g.decide(d.node); a.Verb == Delete {
				all = append(all, Inferred{a.Object, a.Inferred, a.Why})
			}
		}
	}
	return all, open, 0
}

// open reports whether a lookup may yet find an owner absent, and a dependent to be garbage for
// that. Dependents that are being deleted, or that another owner keeps, do not count: their owners
// may never be looked up. Nor does an owner that may not be read, since no answer will come.
func (g *Graph) open(c *claim) bool {
	if c.verdict != unknown && c.verdict != asked && !g.unreadable(c) {
		return false
	}
	return slices.ContainsFunc(c.dependents, func(d dependent) bool {
		n := g.nodes.at(d.node)
		return n.flags&deleting == 0 && g.tally(n)[present] == 0
	})
}
