package graph

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ruling is how a deletion goes on that a finalizer of ours holds: see Ruled.
type ruling struct {
	finalizer   string
	propagation metav1.DeletionPropagation
}

// apply takes in a ruling. One about an object that is not terminating, or does not carry the
// finalizer, is late and ignored: each version of such an object is ruled anew.
func (ev Ruled) apply(g *Graph) {
	id := g.nodeIn(ev.Kind, ev.UID)
	if id == 0 {
		return
	}
	n := g.nodes.at(id)
	finalizers := g.finalizersOf(n)
	if n.flags&deleting == 0 || !slices.Contains(finalizers, ev.Finalizer) {
		return
	}
	now := ruling{ev.Finalizer, ev.Propagation}
	if ev.Propagation == "" {
		now = ruling{}
	}
	if g.rulings[id] == now {
		return
	}
	g.rulings[id] = now
	if ev.Propagation == "" {
		delete(g.rulings, id)
	}
	if g.setEnding(id, finalizers, true, true) {
		g.rejudgeEntry(n.entry)
	}
	g.mark(id)
}

// apply stores which finalizer holds foreground deletions until they are ruled, and judges all that
// is being deleted again.
func (ev Holds) apply(g *Graph) {
	if g.holder == ev.Finalizer {
		return
	}
	g.holder = ev.Finalizer
	for id, n := range g.all() {
		if n.flags&deleting != 0 && g.setEnding(id, g.finalizersOf(n), true, true) {
			g.rejudgeEntry(n.entry)
			g.mark(id)
		}
	}
}

// setEnding stores finalizers and deletion, and reports whether that changed anything. stocked is
// true if the node is counted in its namespace's inventory.
func (g *Graph) setEnding(id uint32, list []string, isDeleting, stocked bool) bool {
	n := g.nodes.at(id)
	finalizers := uint32(0)
	if len(list) > 0 {
		finalizers, _ = g.finalizers.hold(pack(list))
	}
	now := g.endingFlags(id, list, isDeleting)
	before := n.flags & (deleting | ending | ruled)
	changed := before != now || n.finalizers != finalizers
	if stocked && changed {
		g.countEnding(id, -1)
	}
	if n.finalizers != 0 {
		g.finalizers.drop(n.finalizers)
	}
	n.finalizers = finalizers
	n.flags = n.flags&^(deleting|ending|ruled) | now
	if stocked && changed {
		g.countEnding(id, 1)
	}
	switch {
	case now&foreground != 0:
		n.flags &^= released // deleted again, with another propagation
	case before&orphan != 0 && now&orphan == 0:
		n.flags |= released // by us, a leader before us, or the built-in collector
	}
	if now&ending != 0 {
		g.ending[id] = struct{}{}
	} else if before&ending != 0 {
		delete(g.ending, id)
	}
	return changed
}

// endingFlags returns how an object with these finalizers ends: as they say, or else as was ruled.
// One that is held goes foreground only when it is ruled.
func (g *Graph) endingFlags(id uint32, finalizers []string, isDeleting bool) (now flags) {
	r, isRuled := g.rulings[id]
	if isRuled && (!isDeleting || !slices.Contains(finalizers, r.finalizer)) {
		delete(g.rulings, id) // nothing is held by it any more
		isRuled = false
	}
	if !isDeleting {
		return 0
	}
	if isRuled {
		return deleting | ruled | g.endingBy(finalizers, r)
	}
	return deleting | g.endingBy(finalizers, ruling{})
}

// Awaits reports whether an object, as it was read live, waits for its dependents: it is being
// deleted foreground, by its own finalizers or by a ruling.
func (g *Graph) Awaits(live *Object) bool {
	r := g.rulings[g.nodeIn(live.Kind, live.UID)]
	if !slices.Contains(live.Finalizers, r.finalizer) {
		r = ruling{}
	}
	return live.Deleting && g.endingBy(live.Finalizers, r)&foreground != 0
}

// endingBy returns how an object that is being deleted ends, by its finalizers and a ruling, which
// may be zero.
func (g *Graph) endingBy(finalizers []string, r ruling) flags {
	switch {
	case slices.Contains(finalizers, metav1.FinalizerOrphanDependents):
		return orphan // comes first, although the server allows only one: it destroys nothing
	case slices.Contains(finalizers, metav1.FinalizerDeleteDependents):
		if r == (ruling{}) && g.holder != "" && slices.Contains(finalizers, g.holder) {
			return 0
		}
		return foreground
	case r.propagation == metav1.DeletePropagationOrphan:
		return orphan
	case r.propagation == metav1.DeletePropagationForeground:
		return foreground
	}
	return 0
}
