package graph

import (
	"cmp"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Ending is an owner that is being deleted with foreground or orphan, and is still there.
type Ending struct {
	UID         types.UID
	Propagation metav1.DeletionPropagation
	WaitsFor    Awaited
	Blocker     schema.GroupResource // the kind of one of the dependents, if it waits for those
}

// Awaited is what an ending owner waits for.
type Awaited string

// What ending owners wait for.
const (
	AwaitedDependents Awaited = "dependents" // to go, or to be released
	AwaitedLists      Awaited = "lists"      // of kinds that may hold dependents which were never seen
	AwaitedRequests   Awaited = "requests"   // of ours, which release it
)

// Ending returns up to n owners that are being deleted with foreground or orphan, sorted by uid.
// Those in before are chosen first, so that a caller that asks again sees the same ones.
func (g *Graph) Ending(before []types.UID, n int) []Ending {
	ids := map[uint32]struct{}{}
	for _, uid := range before {
		if entryID := g.find(uid); entryID != 0 {
			for id := g.entries.at(entryID).node; id != 0; id = g.next(id) {
				if g.nodes.at(id).flags&ending != 0 && len(ids) < n {
					ids[id] = struct{}{}
				}
			}
		}
	}
	for id := range g.ending {
		if len(ids) >= n {
			break
		}
		ids[id] = struct{}{}
	}
	out := make([]Ending, 0, len(ids))
	for id := range maps.Keys(ids) {
		out = append(out, g.endingOf(id))
	}
	slices.SortFunc(out, func(a, b Ending) int { return cmp.Compare(a.UID, b.UID) })
	return out
}

func (g *Graph) endingOf(id uint32) Ending {
	n := g.nodes.at(id)
	e := Ending{UID: g.uidOf(n.entry), Propagation: metav1.DeletePropagationForeground, WaitsFor: AwaitedDependents}
	held := n.blocking > 0
	if n.flags&orphan != 0 {
		e.Propagation, held = metav1.DeletePropagationOrphan, n.dependents > 0
	}
	switch {
	case n.flags&accepted != 0:
		e.WaitsFor = AwaitedRequests
	case held:
		e.Blocker = g.blocker(id)
	case g.decide(id).Request():
		e.WaitsFor = AwaitedRequests
	default:
		e.WaitsFor = AwaitedLists
	}
	return e
}

// blocker returns the kind of one dependent that an ending owner waits for. It looks at a few only:
// of very many dependents that do not block, it returns one's kind.
func (g *Graph) blocker(id uint32) (kind schema.GroupResource) {
	const most = 64
	looked := 0
	n := g.nodes.at(id)
	for c := g.entries.at(n.entry).claim; c != 0; c = g.claims.at(c).next {
		cl := g.claims.at(c)
		if cl.owner != id {
			continue
		}
		for _, d := range cl.dependents {
			kind = g.slots[g.nodes.at(d.node).slot].GroupResource()
			looked++
			blocks := n.flags&orphan != 0 || g.nodes.at(d.node).owners[d.edge].blocks() > 0
			if blocks || looked == most {
				return kind
			}
		}
	}
	return kind
}
