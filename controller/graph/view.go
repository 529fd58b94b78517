package graph

import (
	"cmp"
	"maps"
	"math"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// View is a copy of one object and what the graph makes of it, for dumps and pages.
type View struct {
	Ref
	Group, Version, KindName string

	Deleting, Foreground, Orphaning, Accepted bool

	Ruled metav1.DeletionPropagation // how the deletion goes on by a ruling; "" without one

	Finalizers []string
	Owners     []OwnerView
	Unfollowed int // owner references beyond these
	Dependents int // references to it
	Blocking   int // those with blockOwnerDeletion
}

// OwnerView is one reference and what it means.
type OwnerView struct {
	metav1.OwnerReference
	Verdict string // present, waiting, orphaning, absent, unknown, asked or unresolvable
}

// Views returns up to n objects. The cursor starts at 0, and the next one is 0 at the end. The
// graph may change between two calls.
func (g *Graph) Views(from uint32, n int) (views []View, next uint32) {
	next = g.walk(from, math.MaxUint32, func(id uint32, _ *node) bool {
		views = append(views, g.view(id))
		return len(views) < n
	})
	return views, next
}

// walk calls found with the nodes from a cursor on, until it returns false or most places were
// looked at. It returns the next cursor.
func (g *Graph) walk(from, most uint32, found func(id uint32, n *node) bool) uint32 {
	for id := max(from, 1); id < g.nodes.next; id++ {
		if n := g.nodes.at(id); n.entry != 0 && !found(id, n) || id-from >= most {
			return id + 1
		}
	}
	return 0
}

func (g *Graph) view(id uint32) View {
	n := g.nodes.at(id)
	s := &g.slots[n.slot]
	var owners []OwnerView
	if len(n.owners) > 0 {
		owners = make([]OwnerView, 0, len(n.owners))
	}
	for _, e := range n.owners {
		owners = append(owners, OwnerView{g.reference(e), g.claims.at(e.claim).verdict.String()})
	}
	return View{
		Ref: g.refOf(id), Group: s.Group, Version: s.Version, KindName: s.Kind,
		Deleting: n.flags&deleting != 0, Foreground: n.flags&foreground != 0,
		Orphaning: n.flags&orphan != 0, Accepted: n.flags&accepted != 0,
		Ruled: g.rulings[id].propagation, Finalizers: g.finalizersOf(n),
		Dependents: int(n.dependents), Blocking: int(n.blocking), Owners: owners, Unfollowed: g.unfollowed[id],
	}
}

// Pending returns up to n uids of objects that need a request or a report: a new leader begins with
// these. The cursor starts at 0, and the next one is 0 at the end. One call looks at a bounded part
// of the graph.
func (g *Graph) Pending(from uint32, n int) (uids []types.UID, next uint32) {
	next = g.walk(from, 1<<14, func(id uint32, v *node) bool {
		if g.quiet(v) {
			return true
		}
		if a := g.decide(id); a.Request() || a.Unresolvable != Resolvable {
			uids = append(uids, g.uidOf(v.entry))
		}
		return len(uids) < n
	})
	return uids, next
}

// KindStats is how far one kind has been seen.
type KindStats struct {
	Resource
	Served  bool
	State   ListState
	Reason  string // why it is slow, behind, failing or forbidden
	Objects int
}

// Stats is the size of the graph. Everything in it is counted as it changes.
type Stats struct {
	Objects int
	Claims  map[string]int // by what they mean
	Kinds   []KindStats    // sorted by resource and group
	Ending  int            // owners that wait for their dependents, or let them go
	Rewound string         // why everything is listed again, while it is
}

// Stats returns the size of the graph.
func (g *Graph) Stats() Stats {
	st := Stats{Objects: g.nodes.used, Claims: map[string]int{}, Ending: len(g.ending), Rewound: g.rewound}
	for v, n := range g.claims.byVerdict {
		st.Claims[verdict(v).String()] = n
	}
	for _, s := range g.slots[1:] {
		st.Kinds = append(st.Kinds, KindStats{s.Resource, s.served, s.state, s.reason, s.nodes})
	}
	slices.SortFunc(st.Kinds, func(a, b KindStats) int {
		return cmp.Compare(a.GroupResource().String(), b.GroupResource().String())
	})
	return st
}

// Ending is an owner that is being deleted with foreground or orphan, and is still there.
type Ending struct {
	UID         types.UID
	Propagation metav1.DeletionPropagation
}

// Ending returns up to most of such owners: those that have their place in the graph for longest, so
// that a caller that asks again sees the same ones.
func (g *Graph) Ending(most int) (all []Ending) {
	for _, id := range slices.Sorted(maps.Keys(g.ending)) {
		if len(all) == most {
			break
		}
		n := g.nodes.at(id)
		e := Ending{g.uidOf(n.entry), metav1.DeletePropagationForeground}
		if n.flags&orphan != 0 {
			e.Propagation = metav1.DeletePropagationOrphan
		}
		all = append(all, e)
	}
	return all
}

// Shows reports whether the graph has an object exactly like this, its resourceVersion aside: a
// decision about the one is then a decision about the other.
func (g *Graph) Shows(o *Object) bool {
	id := g.nodeIn(o.Kind, o.UID)
	if id == 0 {
		return false
	}
	n := g.nodes.at(id)
	return n.name == o.Name && g.namespaces.val(n.namespace) == o.Namespace &&
		n.flags&deleting != 0 == o.Deleting && slices.Equal(g.finalizersOf(n), o.Finalizers) &&
		g.sameOwners(n.owners, o.Owners) && g.unfollowed[id] == o.Unfollowed
}

// Still reports whether an action, made some time ago, is still what is to be done about its object
// as it was read now: the graph shows the object like this, its resourceVersion aside, and decides
// the same. Both are needed: the watch may have brought, since the decision, what makes it wrong.
func (g *Graph) Still(a Action, live *Object) bool {
	now := g.Decide(a.Object.UID)
	now.Object.ResourceVersion = a.Object.ResourceVersion
	return now.Same(a) && g.Shows(live)
}

func (g *Graph) finalizersOf(n *node) []string {
	if n.finalizers == 0 {
		return nil
	}
	return unpack(g.finalizers.val(n.finalizers))
}
