package graph

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// claim is an owner as some dependents wrote it. Each distinct one is judged, and looked up, once.
type claim struct {
	entry      uint32
	next, prev uint32 // claims of the entry
	typ        uint32 // in types
	namespace  uint32 // the dependents', in namespaces
	owner      uint32 // the node that is meant, 0 while there is none
	blocking   int32  // dependents with blockOwnerDeletion
	dependents []dependent
	name       string
	verdict    verdict
	looked     looked
	tries      uint8  // lookups that failed in a row
	finds      uint8  // lookups that found the owner
	orphaned   bool   // absent, and was deleted with orphan
	due        uint32 // the round in which it is to be looked up again; 0: it is not
	cause      cause  // absent: what that is concluded from; 0 if its deletion was seen
}

// dependent is one reference that makes the claim: an object, and which of its references.
type dependent struct{ node, edge uint32 }

type claimKey struct {
	entry, typ, namespace uint32
	name                  string
}

// claimTable holds the claims and finds them by what they say. The agenda has those whose answer
// may change without an event: failed lookups, and owners that only a lookup has found.
type claimTable struct {
	slab[claim]
	byKey     index[claimKey]
	byVerdict [verdicts]int
	agenda    agenda
	reason    map[uint32]string // why the last lookup failed
}

func newClaimTable() claimTable {
	return claimTable{slab: newSlab[claim](), byKey: newIndex[claimKey](), reason: map[uint32]string{}}
}

// find returns the claim of a key, 0 if there is none.
func (t *claimTable) find(k claimKey) uint32 {
	return t.byKey.get(k, func(id uint32) bool { return t.at(id).key() == k })
}

// key returns what identifies a claim.
func (c *claim) key() claimKey { return claimKey{c.entry, c.typ, c.namespace, c.name} }

func (t *claimTable) each(f func(id uint32, c *claim)) {
	for id := uint32(1); id < t.next; id++ {
		if c := t.at(id); c.entry != 0 {
			f(id, c)
		}
	}
}

// verdict is what a claim means for those who make it.
type verdict uint8

const (
	unknown      verdict = iota // to be looked up
	asked                       // being looked up, or to be asked again later
	unresolvable                // cannot be looked up as things are
	present                     // the owner is there
	waiting                     // the owner is there and waits for its dependents (foreground)
	orphaning                   // the owner is there, or was last seen, letting its dependents go (orphan)
	absent                      // there is no such owner, for certain
	verdicts                    // how many
)

var verdictNames = [...]string{"unknown", "asked", "unresolvable", "present", "waiting", "orphaning", "absent"}

func (v verdict) String() string { return verdictNames[v] }

// looked is the state of a claim's lookup.
type looked uint8

const (
	lookedNot looked = iota
	lookedNow
	lookedFailed
	lookedDenied
	lookedPresent
	lookedAbsent // final: uids never return
)

// edgeBits hold the two optional booleans of an owner reference as they were written, and notes.
type edgeBits uint8

const (
	controllerSet edgeBits = 1 << iota
	controllerTrue
	blockSet
	blockTrue

	// The notes are no part of the reference: see noteEdit.

	written // by an edit, after the owner was deleted
	edited  // by an edit, while the owner was not known to be there

	notes = written | edited
)

func bitsOf(r *metav1.OwnerReference) (b edgeBits) {
	if r.Controller != nil {
		b |= controllerSet
		if *r.Controller {
			b |= controllerTrue
		}
	}
	if r.BlockOwnerDeletion != nil {
		b |= blockSet
		if *r.BlockOwnerDeletion {
			b |= blockTrue
		}
	}
	return b
}

func (e edge) blocks() int32 {
	if e.bits&blockTrue != 0 {
		return 1
	}
	return 0
}

func optional(set, value bool) *bool {
	if set {
		return ptr.To(value)
	}
	return nil
}

// reference returns the owner reference of an edge as the object has it.
func (g *Graph) reference(e edge) metav1.OwnerReference {
	c := g.claims.at(e.claim)
	k := g.types.val(c.typ)
	return metav1.OwnerReference{
		APIVersion: k.apiVersion, Kind: k.kind, Name: c.name, UID: g.uidOf(c.entry),
		Controller:         optional(e.bits&controllerSet != 0, e.bits&controllerTrue != 0),
		BlockOwnerDeletion: optional(e.bits&blockSet != 0, e.bits&blockTrue != 0),
	}
}

// sameOwners reports whether edges are the references that were observed. It allocates no strings.
func (g *Graph) sameOwners(edges []edge, refs []metav1.OwnerReference) bool {
	if len(edges) != len(refs) {
		return false
	}
	for i := range refs {
		r, c := &refs[i], g.claims.at(edges[i].claim)
		k := g.types.val(c.typ)
		if k.kind != r.Kind || k.apiVersion != r.APIVersion || c.name != r.Name ||
			edges[i].bits&^notes != bitsOf(r) || g.find(r.UID) != c.entry {
			return false
		}
	}
	return true
}

// setOwners replaces the references of an object. It never patches them, so that an edge comes into
// being in one way only. Claims that both lists make keep what is known of them. fresh is true if
// the object comes, or goes.
func (g *Graph) setOwners(id uint32, refs []metav1.OwnerReference, fresh bool) {
	g.markCycle(id)
	n := g.nodes.at(id)
	before := n.owners
	for i := len(before) - 1; i >= 0; i-- { // from the end: an edge that moves stands before this one
		g.disconnect(before[i])
	}
	n.owners = nil
	if len(refs) > 0 {
		n.owners = make([]edge, len(refs))
		for i := range refs {
			g.connect(id, uint32(i), &refs[i])
		}
	}
	if !fresh {
		g.noteEdit(n, before)
	}
	for _, e := range before {
		if c := g.claims.at(e.claim); c.entry != 0 && len(c.dependents) == 0 {
			g.dropClaim(e.claim)
		}
	}
	g.markCycle(id)
}

func (g *Graph) connect(id, i uint32, r *metav1.OwnerReference) {
	n := g.nodes.at(id)
	c := g.claimOf(r, n.namespace)
	cl := g.claims.at(c)
	e := edge{claim: c, pos: uint32(len(cl.dependents)), bits: bitsOf(r)}
	n.owners[i] = e
	cl.dependents = append(cl.dependents, dependent{id, i})
	cl.blocking += e.blocks()
	if cl.owner != 0 {
		g.count(cl.owner, 1, e.blocks())
	}
}

func (g *Graph) disconnect(e edge) {
	cl := g.claims.at(e.claim)
	last := cl.dependents[len(cl.dependents)-1]
	cl.dependents = cl.dependents[:len(cl.dependents)-1]
	if e.pos < uint32(len(cl.dependents)) {
		cl.dependents[e.pos] = last
		g.nodes.at(last.node).owners[last.edge].pos = e.pos
	}
	cl.blocking -= e.blocks()
	if cl.owner != 0 {
		g.count(cl.owner, -1, -e.blocks())
	}
}

// count changes how many references a node has. A decision changes only when a number comes from or
// goes to zero.
func (g *Graph) count(id uint32, dependents, blocking int32) {
	n := g.nodes.at(id)
	had, blocked := n.dependents > 0, n.blocking > 0
	n.dependents += dependents
	n.blocking += blocking
	if had != (n.dependents > 0) || blocked != (n.blocking > 0) {
		g.mark(id)
	}
}

// claimOf returns the claim that a reference makes, new if no reference made it before.
func (g *Graph) claimOf(r *metav1.OwnerReference, namespace uint32) uint32 {
	entryID := g.enter(r.UID)
	tk := typeKey{r.APIVersion, r.Kind}
	typ, fresh := g.types.hold(tk)
	if fresh {
		for int(typ) >= len(g.typeInfos) {
			g.typeInfos = append(g.typeInfos, typeInfo{})
		}
		g.typeInfos[typ] = g.resolved[tk]
	}
	k := claimKey{entryID, typ, namespace, r.Name}
	if id := g.claims.find(k); id != 0 {
		g.types.drop(typ) // the claim holds it already
		return id
	}
	id := g.claims.alloc()
	g.namespaces.vals[namespace].refs++
	e := g.entries.at(entryID)
	*g.claims.at(id) = claim{entry: entryID, next: e.claim, typ: typ, namespace: namespace, name: k.name}
	if e.claim != 0 {
		g.claims.at(e.claim).prev = id
	}
	e.claim = id
	g.claims.byKey.set(k, id)
	c := g.claims.at(id)
	if c.verdict, c.owner = g.judge(c); c.owner == 0 && g.orphaned.has(r.UID) {
		c.looked, c.orphaned = lookedAbsent, true
		c.verdict, c.owner = g.judge(c)
	}
	g.claims.byVerdict[c.verdict]++
	return id
}

func (g *Graph) dropClaim(id uint32) {
	c := g.claims.at(id)
	if c.prev != 0 {
		g.claims.at(c.prev).next = c.next
	} else {
		g.entries.at(c.entry).claim = c.next
	}
	if c.next != 0 {
		g.claims.at(c.next).prev = c.prev
	}
	g.claims.byKey.drop(c.key(), id)
	delete(g.claims.reason, id)
	delete(g.ended, id)
	g.types.drop(c.typ)
	g.namespaces.drop(c.namespace)
	g.claims.byVerdict[c.verdict]--
	entryID := c.entry
	g.claims.release(id)
	g.leave(entryID)
}

// judge returns what a claim means now, and which node it means. A node counts only if it is
// exactly what the claim says: the same uid under another kind, name or namespace proves nothing.
func (g *Graph) judge(c *claim) (verdict, uint32) {
	t := g.typeInfos[c.typ]
	if t.slot != 0 && !t.ambiguous {
		place := c.namespace
		for id := g.entries.at(c.entry).node; id != 0; id = g.next(id) {
			n := g.nodes.at(id)
			here := n.namespace == place || !g.slots[n.slot].Namespaced
			if n.slot == t.slot && here && n.name == c.name {
				switch {
				case n.flags&orphan != 0:
					return orphaning, id
				case n.flags&foreground != 0:
					return waiting, id
				}
				return present, id
			}
		}
	}
	switch {
	case c.looked == lookedAbsent && c.orphaned:
		return orphaning, 0
	case c.looked == lookedAbsent:
		return absent, 0
	case g.unresolvableOf(c) != Resolvable:
		return unresolvable, 0
	case c.looked == lookedPresent:
		return present, 0
	case c.looked == lookedNow:
		return asked, 0
	}
	return unknown, 0
}

// unresolvableOf returns why a claim that no node answers cannot be looked up.
func (g *Graph) unresolvableOf(c *claim) Unresolvable {
	t := g.typeInfos[c.typ]
	switch {
	case !t.served:
		return UnservedKind
	case t.ambiguous:
		return AmbiguousKind
	case g.slots[t.slot].Namespaced && g.namespaces.val(c.namespace) == "":
		return Misplaced
	case c.looked == lookedFailed || c.looked == lookedDenied:
		return Unreadable
	}
	return Resolvable
}

// rejudgeEntry judges all claims on a uid again.
func (g *Graph) rejudgeEntry(entryID uint32) {
	for id := g.entries.at(entryID).claim; id != 0; id = g.claims.at(id).next {
		g.rejudge(id)
	}
}

// rejudge updates the verdict of a claim, and marks all whose decision rests on it.
func (g *Graph) rejudge(id uint32) {
	c := g.claims.at(id)
	v, owner := g.judge(c)
	if v == c.verdict && owner == c.owner {
		if v == unresolvable {
			g.markDependents(c) // what keeps it from being looked up may be another thing
		}
		return
	}
	if c.owner != 0 {
		g.markCycle(c.owner)
	}
	if c.owner != owner {
		if c.owner != 0 {
			g.count(c.owner, -int32(len(c.dependents)), -c.blocking)
		}
		if owner != 0 {
			g.count(owner, int32(len(c.dependents)), c.blocking)
		}
	}
	g.claims.byVerdict[c.verdict]--
	g.claims.byVerdict[v]++
	c.verdict, c.owner = v, owner
	if v == present {
		g.clearEdited(c)
	}
	if owner != 0 {
		g.noRetry(id)
		if c.looked != lookedNow { // an answer that is on its way will still come
			c.looked, c.orphaned, c.cause = lookedNot, false, 0
		}
		c.finds = 0
		g.markCycle(owner)
	}
	g.markDependents(c)
}

func (g *Graph) markDependents(c *claim) {
	for _, d := range c.dependents {
		g.mark(d.node)
	}
}
