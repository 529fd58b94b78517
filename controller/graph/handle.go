package graph

import "k8s.io/apimachinery/pkg/types"

// Handle is an object's place in a graph: whoever has it need not look for the uid. 0 is nowhere.
//
// It is good as long as the object is in the graph, or something there refers to it. After that it
// finds nothing, until another uid comes into the graph, which it may find then.
type Handle uint32

// Handle is that of a uid; 0 if the graph knows nothing of it.
func (g *Graph) Handle(uid types.UID) Handle { return Handle(g.find(uid)) }

// MostHandle is no less than any handle of now.
func (g *Graph) MostHandle() Handle { return Handle(g.entries.next) }

// ApplyTo does as Apply does, and puts what that returns behind all.
func (g *Graph) ApplyTo(all []Handle, ev Event) []Handle {
	g.apply(ev)
	g.eachDirty(func(entryID uint32) { all = append(all, Handle(entryID)) })
	return all
}

// DecideAt is the decision of Decide, without what names the object and its owners for requests:
// Object and Cause.
func (g *Graph) DecideAt(h Handle) Action {
	if !g.Has(h) {
		return Action{Why: "not in the graph"}
	}
	var a Action
	for id := g.entries.at(uint32(h)).node; id != 0; id = g.next(id) {
		if a, _ = g.word(id); a.Request() {
			break
		}
	}
	return a
}

// Has tells whether there is an object at a handle.
func (g *Graph) Has(h Handle) bool { return h != 0 && g.entries.at(uint32(h)).node != 0 }

// FindAt is Find for a handle.
func (g *Graph) FindAt(h Handle) (View, bool) {
	if !g.Has(h) {
		return View{}, false
	}
	return g.view(g.entries.at(uint32(h)).node), true
}

// FindInto does as FindAt, in the room of a view that is not needed any more: that of its Owners is
// used again.
func (g *Graph) FindInto(v *View, h Handle) bool {
	if !g.Has(h) {
		return false
	}
	g.viewInto(g.entries.at(uint32(h)).node, v)
	return true
}
