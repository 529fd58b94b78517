package graph

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/words"
)

// Decide returns what is to be done about an object. The table is in the package comment.
func (g *Graph) Decide(uid types.UID) Action {
	a := Action{Why: "not in the graph"}
	for id := range g.nodesOf(g.find(uid)) {
		if a = g.decide(id); a.Request() {
			break
		}
	}
	return a
}

// decide returns the row of the table that applies, with all that a request needs, and with two
// limits. While everything is listed again only lookups are made. An object with references that are
// not followed is kept, and its references are not written, since not all of them are known.
func (g *Graph) decide(id uint32) Action {
	a := g.row(id)
	if more := g.unfollowed[id]; more > 0 && a.Verb >= Lookup && a.Verb <= Unblock {
		a = Action{
			Why: fmt.Sprintf("kept: it has %d owner references, and no more than %d are followed",
				MostOwners+more, MostOwners),
			Unresolvable: TooManyOwners,
		}
	}
	if g.rewound != "" && a.Verb > Lookup {
		a = Action{
			Verb: Wait,
			Why:  fmt.Sprintf("every kind is being listed again (%s), then: %s", g.rewound, a.Why),
		}
	}
	n := g.nodes.at(id)
	if n.flags != 0 || len(n.owners) > 0 {
		a.Object = g.refOf(id)
	}
	if a.Verb == Delete {
		g.addCauses(n, &a)
	}
	return a
}

// addCauses completes the delete of an object whose owners are all gone, or waiting for it.
func (g *Graph) addCauses(n *node, a *Action) {
	a.Dependents, a.Inferred = n.dependents, g.inferenceOf(g.causeOfDelete(n))
	for _, e := range n.owners {
		if g.claims.at(e.claim).verdict == waiting {
			a.AwaitedBy = append(a.AwaitedBy, g.claimValue(e.claim))
		}
	}
	if a.Cause = g.claimValue(n.owners[0].claim); len(a.AwaitedBy) > 0 {
		a.Cause = a.AwaitedBy[0]
	}
}

// row returns the first row of the table that applies, without names of the object.
func (g *Graph) row(id uint32) (a Action) { //nolint:funlen // the rows of the table in doc.go
	n := g.nodes.at(id)
	if n.flags == 0 && len(n.owners) == 0 {
		return Action{Why: "no owners"}
	}
	t := g.tally(n)
	switch {
	case n.flags&accepted != 0:
		a.Verb, a.Why = Wait, "request accepted: waiting for the watch to show it"

	case t[orphaning] > 0 && n.flags&deleting == 0 && t[unknown] > 0:
		g.look(n, &a)
		a.Why = fmt.Sprintf("to be released by %s: owner not seen yet: %s", g.names(n, orphaning), g.names(n, unknown))

	case t[orphaning] > 0 && n.flags&deleting == 0 && t[asked] > 0:
		a.Verb = Wait
		a.Why = fmt.Sprintf("to be released by %s: owner being looked up: %s", g.names(n, orphaning), g.names(n, asked))

	case t[orphaning] > 0 && n.flags&deleting == 0 && t[unresolvable] > 0 && g.firstUnreadable(n) != 0:
		a.Verb, a.Unresolvable = Wait, Unreadable
		id := g.firstUnreadable(n)
		a.Why = fmt.Sprintf("to be released by %s: owner %s could not be read: %s",
			g.names(n, orphaning), g.nameOf(id), g.claims.reason[id])

	case t[orphaning] > 0:
		a.Verb, a.Why = Release, "orphaned by "+g.names(n, orphaning)
		a.Owners = g.keepOwners(n, func(v verdict) bool {
			return v == orphaning || n.flags&deleting == 0 && (v == absent || v == waiting)
		})

	case n.flags&orphan != 0:
		g.decideOrphaning(id, &a)

	case n.flags&foreground != 0:
		g.decideForeground(id, &a)

	case n.flags&ruled != 0:
		g.unfinalize(id, "", "background deletion: its dependents are collected when it is gone", &a)

	case n.flags&deleting != 0:
		a.Why = "terminating"
		if n.finalizers != 0 {
			a.Why += ": held by " + strings.Join(g.finalizersOf(n), ", ")
		}

	case len(n.owners) == 0:
		a.Why = "no owners"

	case t[present] > 0 && t[absent]+t[waiting] > 0:
		a.Verb = Release
		a.Why = fmt.Sprintf("owned by %s; not any more by %s", g.names(n, present), g.names(n, absent, waiting))
		a.Owners = g.keepOwners(n, func(v verdict) bool { return v == absent || v == waiting })

	case t[present] > 0 && t[unknown] > 0:
		g.look(n, &a)
		a.LowPriority = true
		a.Why = fmt.Sprintf("owned by %s; not seen yet: %s", g.names(n, present), g.names(n, unknown))

	case t[present] > 0:
		a.Why = "owned by " + g.names(n, present)

	case t[unknown] > 0:
		g.look(n, &a)
		a.Why = "owner not seen yet: " + g.names(n, unknown)
		a.Mismatched = g.mismatched(n)

	case t[asked] > 0:
		a.Verb, a.Why = Wait, "owner being looked up: "+g.names(n, asked)

	case t[unresolvable] > 0:
		a.Why, a.Unresolvable = g.whyUnresolvable(n)
		a.Mismatched = g.mismatched(n)

	case g.protected[id] != "":
		a.Verb, a.Kept = Release, g.protected[id]
		a.Why = g.whyDelete(n) + "; kept, because " + a.Kept
		a.Owners = g.keepOwners(n, func(v verdict) bool { return v == absent || v == waiting })

	case t[waiting] > 0 && n.dependents > 0:
		if members, tooMany := g.cycle(id); members != nil || tooMany {
			g.unblock(n, members, &a)
			break
		}
		a.Verb, a.Propagation = Delete, metav1.DeletePropagationForeground
		a.Why = fmt.Sprintf("owner is being deleted foreground: %s; has dependents of its own", g.names(n, waiting))

	default:
		a.Verb, a.Propagation = Delete, g.propagation(n)
		a.Why = g.whyDelete(n)
	}
	return a
}

// look makes an action the lookup of the first unknown owner.
func (g *Graph) look(n *node, a *Action) {
	a.Verb, a.Claim = Lookup, g.claimValue(g.first(n, unknown))
}

// firstUnreadable returns the first owner whose last lookup failed for a reason that may pass; 0 if
// there is none. It may turn out to be absent, and must not be the last one left then.
func (g *Graph) firstUnreadable(n *node) uint32 {
	for _, e := range n.owners {
		if g.unreadable(g.claims.at(e.claim)) {
			return e.claim
		}
	}
	return 0
}

// unreadable reports whether the last lookup of a claim failed for a reason that may pass.
func (g *Graph) unreadable(c *claim) bool {
	return c.verdict == unresolvable && c.looked == lookedFailed && g.unresolvableOf(c) == Unreadable
}

// tally counts an object's references by verdict.
func (g *Graph) tally(n *node) (t [verdicts]int) {
	for _, e := range n.owners {
		t[g.claims.at(e.claim).verdict]++
	}
	return t
}

// decideOrphaning lets an owner go when all its dependents are released. While a kind's list is
// incomplete the owner stays: a dependent that was never seen would be collected once it is gone.
func (g *Graph) decideOrphaning(id uint32, a *Action) {
	n := g.nodes.at(id)
	if n.dependents > 0 {
		a.Verb = Wait
		a.Why = fmt.Sprintf("orphaning: %s still to be removed",
			words.Count(n.dependents, "reference to it is", "references to it are"))
		return
	}
	if kinds := g.incompleteKinds(id); kinds != "" {
		a.Verb, a.Unseen = Wait, kinds
		a.Why = "orphaning: its dependents may be among what is not listed yet: " + kinds
		return
	}
	g.unfinalize(id, metav1.FinalizerOrphanDependents, "orphaning: no object refers to it any more", a)
}

// decideForeground lets an owner go when nothing blocks it. A kind that fails to list does not hold
// it up: its dependents are collected whenever they are seen.
func (g *Graph) decideForeground(id uint32, a *Action) {
	n := g.nodes.at(id)
	if n.blocking > 0 {
		if members, tooMany := g.cycle(id); tooMany || members != nil && g.leads(id, members) {
			g.unblock(n, members, a)
			return
		}
		a.Verb = Wait
		a.Why = fmt.Sprintf("foreground deletion: %s it",
			words.Count(n.blocking, "dependent blocks", "dependents block"))
		return
	}
	if kinds := g.listingKinds(g.slots[n.slot].Namespaced); kinds != "" {
		a.Verb, a.Unseen, a.Why = Wait, kinds, "foreground deletion: still listing "+kinds
		return
	}
	g.unfinalize(id, metav1.FinalizerDeleteDependents, "foreground deletion: nothing blocks it any more", a)
}

// unfinalize takes the garbage collector's finalizer off an object that has nothing to wait for,
// and with it the finalizer of ours that holds the object.
func (g *Graph) unfinalize(id uint32, finalizer, why string, a *Action) {
	held := g.rulings[id].finalizer
	finalizers := g.finalizersOf(g.nodes.at(id))
	if !slices.Contains(finalizers, finalizer) {
		finalizer = held // it ends like this because that was ruled
	}
	a.Verb, a.Finalizer, a.Why = Unfinalize, finalizer, why
	a.Finalizers = slices.DeleteFunc(finalizers, func(f string) bool { return f == finalizer || f == held })
}

// unblock clears blockOwnerDeletion in the references to owners that are in a cycle with the
// object: each would wait for the other forever. If the cycle is too large to follow, members is
// nil and all references are cleared. The same objects are deleted then, but owners may go before
// the object.
func (g *Graph) unblock(n *node, members map[uint32]bool, a *Action) {
	a.Verb = Unblock
	a.Why = "in a cycle of " + words.Count(len(members), "object that waits for itself",
		"objects that wait for each other")
	if members == nil {
		a.Why = "blocks owners that block more objects than are followed, and may wait for itself: " +
			"its owners are not to wait for it"
	}
	for _, e := range n.owners {
		r := g.reference(e)
		owner := g.claims.at(e.claim).owner
		if e.bits&blockTrue != 0 && (members[owner] || members == nil && owner != 0) {
			r.BlockOwnerDeletion = new(bool)
		}
		a.Owners = append(a.Owners, r)
	}
}

// propagation returns what the object's own finalizers ask for, as the reference does (RB 3.11).
func (g *Graph) propagation(n *node) metav1.DeletionPropagation {
	finalizers := g.finalizersOf(n)
	switch {
	case slices.Contains(finalizers, metav1.FinalizerOrphanDependents):
		return metav1.DeletePropagationOrphan
	case slices.Contains(finalizers, metav1.FinalizerDeleteDependents):
		return metav1.DeletePropagationForeground
	}
	return metav1.DeletePropagationBackground
}

func (g *Graph) whyDelete(n *node) string {
	gone, leaving := g.names(n, absent), g.names(n, waiting)
	switch {
	case gone == "":
		return "owner is being deleted foreground: " + leaving
	case leaving == "":
		return "owner is gone: " + gone
	}
	return fmt.Sprintf("owner is gone: %s; being deleted foreground: %s", gone, leaving)
}

// whyUnresolvable describes the first unresolvable reference, and what would have to change.
func (g *Graph) whyUnresolvable(n *node) (string, Unresolvable) {
	id := g.first(n, unresolvable)
	c := g.claims.at(id)
	k := g.types.val(c.typ)
	switch t := g.unresolvableOf(c); t {
	case UnservedKind:
		return fmt.Sprintf("kept: owner %s: the cluster serves no kind %q in %q", g.nameOf(id), k.kind, k.apiVersion), t
	case AmbiguousKind:
		return fmt.Sprintf("kept: owner %s: more than one resource has kind %q in %q",
			g.nameOf(id), k.kind, k.apiVersion), t
	case Misplaced:
		return fmt.Sprintf("kept: owner %s is of a namespaced kind, and a cluster-scoped object cannot have one",
			g.nameOf(id)), t
	default:
		return fmt.Sprintf("kept: owner %s could not be read: %s", g.nameOf(id), g.claims.reason[id]), t
	}
}

// mismatched returns the first reference that no node answers although an object with its uid is in
// another namespace; nil if there is none.
func (g *Graph) mismatched(n *node) *metav1.OwnerReference {
	for _, e := range n.owners {
		c := g.claims.at(e.claim)
		for _, owner := range g.nodesOf(c.entry) {
			if c.owner == 0 && owner.namespace != n.namespace && g.slots[owner.slot].Namespaced {
				r := g.reference(e)
				return &r
			}
		}
	}
	return nil
}

func (g *Graph) first(n *node, vs ...verdict) uint32 {
	for _, e := range n.owners {
		if slices.Contains(vs, g.claims.at(e.claim).verdict) {
			return e.claim
		}
	}
	return 0
}

// nameOf returns the owner of a claim as people name it.
func (g *Graph) nameOf(claimID uint32) string {
	c := g.claims.at(claimID)
	v := Claim{
		Kind: g.types.val(c.typ).kind, Namespace: g.namespaces.val(c.namespace), Name: c.name,
		Namespaced: g.slots[g.typeInfos[c.typ].slot].Namespaced,
	}
	return v.String()
}

// names returns the owners with one of the verdicts, sorted: the first three, and how many more.
func (g *Graph) names(n *node, vs ...verdict) string {
	const most = 3
	names := make([]string, 0, most)
	more := 0
	for _, e := range n.owners {
		if !slices.Contains(vs, g.claims.at(e.claim).verdict) {
			continue
		}
		if len(names) == most {
			more++
			continue
		}
		names = append(names, g.nameOf(e.claim))
	}
	if len(names) == 1 {
		return names[0] // there is nothing to sort
	}
	slices.Sort(names)
	s := strings.Join(names, ", ")
	if more > 0 {
		s += fmt.Sprintf(" and %d more", more)
	}
	return s
}

// keepOwners returns the references that stay when those with the given verdicts go. Each reference
// counts by itself: two with one uid may mean different things.
func (g *Graph) keepOwners(n *node, goes func(verdict) bool) []metav1.OwnerReference {
	stay := []metav1.OwnerReference{}
	for _, e := range n.owners {
		if !goes(g.claims.at(e.claim).verdict) {
			stay = append(stay, g.reference(e))
		}
	}
	return stay
}
