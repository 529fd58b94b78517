package graph

import (
	"cmp"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// MostRemembered is how many Remembered deletions a graph holds.
const MostRemembered = 4096

// EndedOwner is an owner whose deletion was seen, or follows from that of another, while objects
// still refer to it.
type EndedOwner struct {
	Kind       schema.GroupResource
	UID        types.UID
	References int // of objects to it
}

// answerForGood settles a claim whose owner has ended.
func (g *Graph) answerForGood(id uint32, orphans bool, why cause) {
	g.setLooked(id, lookedAbsent, "")
	g.claims.at(id).orphaned, g.claims.at(id).cause = orphans, why
	if !orphans && why == 0 {
		g.ended[id] = struct{}{}
	}
}

// EndedOwners returns, sorted by uid, the owners that were seen to be deleted and left dependents,
// and the owners among what goes with these. It returns none if no more than enough objects go. It
// leaves out owners to which an edit has added a reference since: their deletion did not ask for
// that. It looks at no more than most references.
func (g *Graph) EndedOwners(enough, most int) []EndedOwner {
	if len(g.ended) == 0 {
		return nil
	}
	type owner struct{ entry, slot uint32 }
	found := map[owner]EndedOwner{}
	var left []types.UID
	for id := range g.ended {
		c := g.claims.at(id)
		of := owner{c.entry, g.typeInfos[c.typ].slot}
		if c.verdict == present || c.owner != 0 || c.orphaned || c.cause != 0 {
			continue
		}
		references, byEdit := g.referencesTo(of.entry, of.slot)
		if byEdit {
			continue
		}
		for _, d := range c.dependents {
			if n := g.nodes.at(d.node); n.flags&deleting == 0 && len(left) < most {
				left = append(left, g.uidOf(n.entry))
				found[of] = EndedOwner{g.slots[of.slot].GroupResource(), g.uidOf(c.entry), references}
			}
		}
	}
	all, complete := g.weigh(most, left, func(n *node) {
		if n.dependents == 0 || g.propagation(n) == metav1.DeletePropagationOrphan {
			return
		}
		if references, byEdit := g.referencesTo(n.entry, n.slot); !byEdit {
			found[owner{n.entry, n.slot}] = EndedOwner{g.slots[n.slot].GroupResource(), g.uidOf(n.entry), references}
		}
	})
	goes := 0
	for _, of := range all {
		goes += of.Count
	}
	if complete && goes <= enough {
		return nil
	}
	return slices.SortedFunc(maps.Values(found), func(a, b EndedOwner) int { return cmp.Compare(a.UID, b.UID) })
}

// referencesTo counts the references to an owner of a kind, and reports whether an edit has written
// one since the owner was last known to be there.
func (g *Graph) referencesTo(entryID, slotID uint32) (n int, byEdit bool) {
	for _, c := range g.claimsOn(entryID) {
		if g.typeInfos[c.typ].slot != slotID {
			continue
		}
		n += len(c.dependents)
		byEdit = byEdit || slices.ContainsFunc(c.dependents, func(d dependent) bool {
			return g.nodes.at(d.node).owners[d.edge].bits&edited != 0
		})
	}
	return n, byEdit
}

// apply notes that a process before this one saw an owner deleted. That counts once a read finds
// no owner, and only if references to it are no more than were recorded and none was edited since.
func (ev Remembered) apply(g *Graph) {
	slotID, entryID := g.slotIDs[ev.Kind], g.find(ev.UID)
	if slotID == 0 || entryID == 0 || g.nodeOf(slotID, entryID) != 0 {
		return
	}
	if n, byEdit := g.referencesTo(entryID, slotID); n > ev.References || byEdit {
		return
	}
	g.remembered.add(slotID, ev.UID)
	for id, c := range g.claimsOn(entryID) {
		if g.typeInfos[c.typ].slot != slotID {
			continue
		}
		g.ended[id] = struct{}{}
		if c.cause == causeOf(slotID, OwnerNotFound) {
			c.cause = 0
			g.markDependents(c)
		}
	}
}

// causeOfAbsence returns what follows from a read that finds no owner: an inference, unless the
// owner's deletion is remembered.
func (g *Graph) causeOfAbsence(c *claim) cause {
	slotID := g.typeInfos[c.typ].slot
	if kind, is := g.remembered.slotOf(g.uidOf(c.entry)); is && kind == slotID {
		if _, byEdit := g.referencesTo(c.entry, slotID); !byEdit {
			return 0
		}
	}
	return causeOf(slotID, OwnerNotFound)
}
