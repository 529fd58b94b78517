package graph

import "k8s.io/apimachinery/pkg/types"

// Handle is an object's place in a graph, and saves looking for its uid. 0 is nowhere.
//
// It is good while the object is in the graph, or something there refers to it. After that it finds
// nothing, or whatever uid has taken the place.
type Handle uint32

// Handle returns the handle of a uid; 0 if the graph knows nothing of it.
func (g *Graph) Handle(uid types.UID) Handle { return Handle(g.find(uid)) }

// MostHandle returns an upper bound of the handles in use.
func (g *Graph) MostHandle() Handle { return Handle(g.entries.next) }

// ApplyTo is Apply, and appends the handles of the objects to all.
func (g *Graph) ApplyTo(all []Handle, ev Event) []Handle {
	g.apply(ev)
	g.eachDirty(func(entryID uint32) { all = append(all, Handle(entryID)) })
	return all
}

// DecideAt is Decide without the names that a request needs: Object, Cause and AwaitedBy.
func (g *Graph) DecideAt(h Handle) Action {
	if !g.Has(h) {
		return Action{Why: "not in the graph"}
	}
	var a Action
	for id := g.entries.at(uint32(h)).node; id != 0; id = g.next(id) {
		if a, _ = g.decideUnnamed(id); a.Request() {
			break
		}
	}
	return a
}

// Has reports whether there is an object at a handle.
func (g *Graph) Has(h Handle) bool { return h != 0 && g.entries.at(uint32(h)).node != 0 }

// FindAt is Find for a handle.
func (g *Graph) FindAt(h Handle) (View, bool) {
	if !g.Has(h) {
		return View{}, false
	}
	return g.view(g.entries.at(uint32(h)).node), true
}

// FindInto is FindAt into a view that is not needed any more, whose Owners it overwrites.
func (g *Graph) FindInto(v *View, h Handle) bool {
	if !g.Has(h) {
		return false
	}
	g.viewInto(g.entries.at(uint32(h)).node, v)
	return true
}
