package graph

import (
	"iter"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Graph holds who owns whom in a cluster, as far as it has been seen.
//
// It starts no goroutine, takes no lock and reads no clock. It is not safe for concurrent use.
type Graph struct {
	byKey            index[key]           // uid → entry
	byNonCanonical   map[types.UID]uint32 // uid → entry, for uids that are no UUIDs
	nonCanonicalUIDs map[uint32]types.UID // entry → uid, for the same
	siblings         map[uint32]uint32    // node → the next one with its uid

	entries slab[entry]
	nodes   slab[node]
	claims  claimTable

	namespaces interner[string]
	finalizers interner[string] // lists, packed
	types      interner[typeKey]
	typeInfos  []typeInfo // by id in types
	resolved   map[typeKey]typeInfo

	slots           []slot
	slotIDs         map[schema.GroupResource]uint32
	incompleteState string // the incomplete kinds, and why they are
	hides           bool   // some slot had hidden owners

	textVersions    map[uint32]string   // node → resourceVersion, where it is not a plain number
	rulings         map[uint32]ruling   // node → how its deletion goes on, where a finalizer of ours holds it
	holder          string              // the finalizer that holds foreground deletions until then; see Holds
	causes          map[uint32]cause    // node → what its deletion rests on, where no client asked for that
	unfollowed      map[uint32]int      // node → how many owner references it has that are not followed
	protected       map[uint32]string   // node → why it is kept although it is garbage, at the version that it has
	ending          map[uint32]struct{} // nodes that are waiting for their dependents to go, or to be released
	accepted        int                 // nodes with the accepted flag
	orphaned        tombstones
	recentlyDeleted tombstones
	remembered      tombstones          // owners that a process before this one saw deleted
	ended           map[uint32]struct{} // claims on owners whose deletion it or this process saw

	history uint32 // how often the API server's history went back
	rewound string // why it did; "" once every kind has been listed since

	inventories map[uint32]*inventory // by namespace
	draining    map[string]struct{}   // namespaces whose changes are reported
	changed     map[string]struct{}   // those that have changed

	dirty []uint32 // nodes marked since the last Apply
}

// New returns an empty graph.
func New() *Graph {
	return &Graph{
		byKey:            newIndex[key](),
		byNonCanonical:   map[types.UID]uint32{},
		nonCanonicalUIDs: map[uint32]types.UID{},
		siblings:         map[uint32]uint32{},
		entries:          newSlab[entry](),
		nodes:            newSlab[node](),
		claims:           newClaimTable(),
		namespaces:       newInterner[string](),
		finalizers:       newInterner[string](),
		types:            newInterner[typeKey](),
		typeInfos:        make([]typeInfo, 1),
		slots:            make([]slot, 1),
		slotIDs:          map[schema.GroupResource]uint32{},
		textVersions:     map[uint32]string{},
		rulings:          map[uint32]ruling{},
		protected:        map[uint32]string{},
		unfollowed:       map[uint32]int{},
		causes:           map[uint32]cause{},
		ending:           map[uint32]struct{}{},
		orphaned:         newTombstones(maxOrphaned),
		recentlyDeleted:  newTombstones(maxRecentlyDeleted),
		remembered:       newTombstones(MostRemembered),
		ended:            map[uint32]struct{}{},
		inventories:      map[uint32]*inventory{},
		draining:         map[string]struct{}{},
		changed:          map[string]struct{}{},
	}
}

// node is one object. It takes 80 bytes without its name and references, which
// TestNodesAndEntriesStaySmall checks.
type node struct {
	entry      uint32
	slot       uint32
	namespace  uint32 // in namespaces
	finalizers uint32 // in finalizers; 0: none
	dependents int32  // references to this node, its own included
	blocking   int32  // those among them with blockOwnerDeletion
	place      uint32 // among the contents of its namespace, if it has one
	flags      flags
	epoch      uint8 // the list of its kind that last showed it
	version    uint64
	name       string
	owners     []edge
}

type flags uint8

const (
	deleting   flags = 1 << iota
	foreground       // deleting, with the foregroundDeletion finalizer, or ruled so: waits for its dependents
	orphan           // deleting, with the orphan finalizer, or ruled so: lets its dependents go
	accepted         // a request was accepted whose effect the watch has not shown yet
	released         // deleting, and was orphaning before: what still refers to it is released, not collected
	marked           // in Graph.dirty
	ruled            // deleting, and in Graph.rulings
	overdue          // accepted, and before the last round that gives up
)

const ending = foreground | orphan

// edge is one owner reference, in the order in which the object has it.
type edge struct {
	claim uint32
	pos   uint32 // of this edge in the claim's dependents
	bits  edgeBits
}

// Apply applies one event and returns the uids of the objects whose decision may have changed, each
// once, in an order that follows from the events. Every object in the graph whose decision did
// change is among them.
func (g *Graph) Apply(ev Event) []types.UID {
	ev.apply(g)
	if len(g.dirty) == 0 {
		return nil
	}
	uids := make([]types.UID, 0, len(g.dirty))
	for _, id := range g.dirty {
		n := g.nodes.at(id)
		if n.flags&marked == 0 {
			continue // left the graph, and the id may serve another
		}
		uids = append(uids, g.uidOf(n.entry))
		for _, same := range g.nodesOf(n.entry) {
			same.flags &^= marked // one uid under two kinds is one decision
		}
	}
	g.dirty = g.dirty[:0]
	return uids
}

// all yields the nodes. The one that is yielded may be removed.
func (g *Graph) all() iter.Seq2[uint32, *node] {
	return func(yield func(uint32, *node) bool) {
		for id := uint32(1); id < g.nodes.next; id++ {
			if n := g.nodes.at(id); n.entry != 0 && !yield(id, n) {
				return
			}
		}
	}
}

func (g *Graph) mark(id uint32) {
	if n := g.nodes.at(id); n.flags&marked == 0 {
		n.flags |= marked
		g.dirty = append(g.dirty, id)
	}
}

func (ev Observed) apply(g *Graph) {
	o := ev.Object
	slotID := g.slotOf(o.Kind)
	s := &g.slots[slotID]
	if s.state == Unwatched {
		return // a last event of a reflector that was told to stop
	}
	entryID := g.enter(o.UID)
	id := g.nodeOf(slotID, entryID)
	fresh := id == 0
	if fresh {
		id = g.nodes.alloc()
		n, e := g.nodes.at(id), g.entries.at(entryID)
		// The name is copied: the original would keep the memory of its list alive. That is a tenth
		// of all memory, measured at 100,000 objects.
		*n = node{entry: entryID, slot: slotID, name: strings.Clone(o.Name)}
		if e.node != 0 {
			g.siblings[id] = e.node
		}
		n.namespace, _ = g.namespaces.hold(o.Namespace)
		e.node = id
		s.nodes++
		s.near = id
	}
	n := g.nodes.at(id)
	n.epoch = s.epoch
	moved := !fresh && (n.name != o.Name || g.namespaces.val(n.namespace) != o.Namespace)
	if moved { // not a thing that Kubernetes does; an aggregated API might
		g.stock(id, -1)
		n.name = o.Name
		g.namespaces.drop(n.namespace)
		n.namespace, _ = g.namespaces.hold(o.Namespace)
	}
	newer := g.setVersion(id, o.ResourceVersion)
	if newer {
		s.changes++
	}
	shown := newer && n.flags&accepted != 0 // the same version again is not the effect of anything
	if shown {
		g.clearAccepted(n)
	}
	ended := g.setEnding(id, o.Finalizers, o.Deleting, !fresh && !moved)
	if fresh || moved {
		g.stock(id, 1)
	}
	if o.Kind == definitions && (fresh || ended) {
		g.define(o.Name, o.Deleting)
	}
	if fresh || moved || ended {
		g.rejudgeEntry(entryID)
	}
	owned := moved || !g.sameOwners(n.owners, o.Owners) // where it is says which owners are meant
	if owned {
		g.setOwners(id, o.Owners, fresh)
	}
	owned = g.setUnfollowed(id, o.Unfollowed) || owned
	if fresh || moved || ended || owned || shown || newer && !g.quiet(n) {
		g.mark(id)
	}
}

// quiet reports whether a node needs no request, whatever its resourceVersion is.
func (g *Graph) quiet(n *node) bool {
	if n.flags&(ending|ruled) != 0 {
		return false
	}
	for _, e := range n.owners {
		if g.claims.at(e.claim).verdict != present {
			return false
		}
	}
	return true
}

func (ev Gone) apply(g *Graph) { g.gone(ev.Kind, ev.UID, false) }

func (ev NotFound) apply(g *Graph) {
	if ev.History == g.history {
		g.gone(ev.Kind, ev.UID, true)
	}
}

// gone removes an object that is certainly deleted, and settles every claim on it. concluded is
// true if a live read showed that, and not the watch.
func (g *Graph) gone(kind schema.GroupResource, uid types.UID, concluded bool) {
	g.recentlyDeleted.add(g.slotIDs[kind], uid)
	id := g.nodeIn(kind, uid)
	if id == 0 {
		return
	}
	if kind == definitions {
		g.define(g.nodes.at(id).name, true)
	}
	g.settle(id, g.leavesOrphans(id), g.causeOfEnd(id, concluded))
	g.remove(id)
}

// leavesOrphans reports whether dependents of a node are released, and not collected, when it has
// left the graph, however late they are seen. Only this process knows that.
func (g *Graph) leavesOrphans(id uint32) bool {
	n := g.nodes.at(id)
	return n.flags&(orphan|released) != 0 || !g.orphaned.empty() && g.orphaned.has(g.uidOf(n.entry))
}

// settle answers every claim on a node for good. why is what its dependents' deletion rests on; 0
// if a client deleted the node.
func (g *Graph) settle(id uint32, orphans bool, why cause) {
	entryID := g.nodes.at(id).entry
	if orphans {
		g.orphaned.add(g.nodes.at(id).slot, g.uidOf(entryID))
	}
	for claimID, c := range g.claimsOn(entryID) {
		if c.owner == id {
			g.answerForGood(claimID, orphans, why)
		}
	}
}

// remove takes a node out of the graph. It settles nothing.
func (g *Graph) remove(id uint32) {
	g.setOwners(id, nil, true)
	n := g.nodes.at(id)
	entryID := n.entry
	g.unlink(entryID, id)
	for same := range g.nodesOf(entryID) {
		g.mark(same) // the uid stays, and what is decided about it may have been this node's
	}
	g.rejudgeEntry(entryID)

	g.stock(id, -1)
	g.namespaces.drop(n.namespace)
	if n.finalizers != 0 {
		g.finalizers.drop(n.finalizers)
	}
	if n.flags&accepted != 0 {
		g.accepted--
	}
	delete(g.ending, id)
	delete(g.rulings, id)
	delete(g.protected, id)
	delete(g.unfollowed, id)
	delete(g.causes, id)
	delete(g.textVersions, id)
	g.forgetHidden(id)
	g.slots[n.slot].nodes--
	g.slots[n.slot].changes++
	g.nodes.release(id)
	g.leave(entryID)
}

// apply marks an object whose request was accepted, unless the watch has already shown another
// version.
func (ev Accepted) apply(g *Graph) {
	o := ev.Action.Object
	id := g.nodeIn(o.Kind, o.UID)
	if id == 0 {
		return
	}
	n := g.nodes.at(id)
	if n.flags&accepted != 0 || g.versionOf(id) != o.ResourceVersion {
		return
	}
	n.flags |= accepted
	g.accepted++
	g.mark(id)
}

func (g *Graph) clearAccepted(n *node) {
	n.flags &^= accepted | overdue
	g.accepted--
}

// giveUpAccepted unmarks objects whose request was accepted before the previous call and whose
// effect has not shown. A request accepted since then waits for the next call, or one sent a moment
// ago would be sent twice.
func (g *Graph) giveUpAccepted() {
	left := g.accepted
	for id := uint32(1); id < g.nodes.next && left > 0; id++ {
		n := g.nodes.at(id)
		if n.flags&accepted == 0 {
			continue
		}
		left--
		if n.flags&overdue == 0 {
			n.flags |= overdue
			continue
		}
		g.clearAccepted(n)
		g.mark(id)
	}
}

// setVersion stores a resourceVersion, as a number where it is one, and reports whether it changed.
func (g *Graph) setVersion(id uint32, version string) (changed bool) {
	if g.versionOf(id) == version {
		return false
	}
	delete(g.textVersions, id)
	delete(g.protected, id)
	n := g.nodes.at(id)
	v, err := strconv.ParseUint(version, 10, 64)
	if err != nil || v == 0 || strconv.FormatUint(v, 10) != version {
		v = 0
		g.textVersions[id] = version
	}
	n.version = v
	return true
}

func (g *Graph) versionOf(id uint32) string {
	if v := g.nodes.at(id).version; v != 0 {
		return strconv.FormatUint(v, 10)
	}
	return g.textVersions[id]
}

func (g *Graph) refOf(id uint32) Ref {
	n := g.nodes.at(id)
	return Ref{
		Kind:            g.slots[n.slot].GroupResource(),
		Namespace:       g.namespaces.val(n.namespace),
		Name:            n.name,
		UID:             g.uidOf(n.entry),
		ResourceVersion: g.versionOf(id),
	}
}
