package graph

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Resource is one kind that the cluster serves, as discovery describes it.
type Resource struct {
	Group    string
	Resource string
	Kind     string
	// Version is the one that is watched and written: the server's preference.
	Version string
	// Versions are all that serve the kind; owner references may name any of them.
	Versions   []string
	Namespaced bool
	// Collected kinds can be listed, watched and deleted, and no flag has them ignored.
	// The others resolve references, and are looked up live, but have no nodes.
	Collected bool
	// Deletable, Listable and Patchable are what the server offers; a namespace is drained of all
	// that is deletable.
	Deletable, Listable, Patchable bool
}

// GroupResource names the kind without a version: versions are views of the same objects.
func (r Resource) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: r.Group, Resource: r.Resource}
}

// ListState tells how much of a kind the graph has seen.
type ListState uint8

// The states of a kind. Only Synced makes its list complete.
const (
	Unwatched ListState = iota // no reflector feeds it
	Listing                    // the first list is under way
	Slow                       // the first list is under way, and others no longer wait for it
	Synced                     // listed at least once; a watch follows it
	Behind                     // listed at least once, and its watch is broken: objects may be unseen
	Failing                    // never listed, and the last attempt failed
	Forbidden                  // never listed, because we may not: not ours to collect
)

var listStateNames = [...]string{"unwatched", "listing", "slow", "synced", "behind", "failing", "forbidden"}

func (s ListState) String() string { return listStateNames[s] }

// slot is a kind's place in the graph. Slots are never freed: nodes and types hold their index.
type slot struct {
	Resource
	served bool      // in the last Serving event
	state  ListState // Unwatched exactly when no node may exist
	reason string    // why Slow, Behind, Failing or Forbidden
	nodes  int
	near   uint32 // the node added last: its neighbours are examples of the kind
	usual  string // the name of the one that Kubernetes puts into every namespace
	epoch  uint8  // of the list under way or last ended; nodes carry the epoch that last saw them
	lists  uint32 // lists ended so far; an answer older than the last list proves nothing
	// changes counts objects that came, went, or are at another resourceVersion.
	changes uint64
	// undefined is true once the kind's definition is being deleted, until there is another.
	undefined bool
	// hidden are owners that are there, and to which objects of the kind referred when its watch
	// ended. A list of the kind, or the end of its definition, forgets them.
	hidden map[uint32]struct{}
}

// Kind returns what is known of a kind; zero of one that was never served or shown.
func (g *Graph) Kind(kind schema.GroupResource) Resource { return g.slots[g.slotIDs[kind]].Resource }

// Changes returns how often objects of a kind came, went or changed their version. As long as n is
// the same and followed is true, each is as it was. followed is false while the kind is not synced.
func (g *Graph) Changes(kind schema.GroupResource) (n uint64, followed bool) {
	s := &g.slots[g.slotIDs[kind]]
	return s.changes, s.state == Synced
}

// complete reports whether the graph has every object of a kind. A kind that is not served has
// none.
func (g *Graph) complete(kind schema.GroupResource) bool {
	s := &g.slots[g.slotIDs[kind]] // the first is no kind's
	return g.resolved != nil && (!s.served || s.state == Synced)
}

// listing reports whether the first list of the kind is still expected.
func (s *slot) listing() bool {
	return s.served && s.Collected && (s.state == Listing || s.state == Slow)
}

// incomplete reports whether dependents of this kind may exist that the graph has not seen,
// although it should in time.
func (s *slot) incomplete() bool {
	return s.listing() || s.served && s.Collected && (s.state == Failing || s.state == Behind) || s.away()
}

// typeKey is what an owner reference says about the kind of the owner.
type typeKey struct{ apiVersion, kind string }

// typeInfo is what a typeKey resolves to. It keeps its slot when the whole kind is not served any
// more, so that deletions still on their way from the watch are understood. A version that ends
// while its kind goes on resolves to nothing, as in a process that starts now.
type typeInfo struct {
	slot       uint32 // 0: it resolves to nothing
	served     bool
	ambiguous  bool // two resources claim this apiVersion and kind: no lookup could be trusted
	namespaced bool // of the slot: a kind that comes back with another scope resolves differently
}

// slotOf returns the index of a kind's slot, and adds an unserved one for a new kind.
func (g *Graph) slotOf(gr schema.GroupResource) uint32 {
	if id, ok := g.slotIDs[gr]; ok {
		return id
	}
	id := uint32(len(g.slots))
	g.slots = append(g.slots, slot{Resource: Resource{Group: gr.Group, Resource: gr.Resource}, usual: usual[gr]})
	g.slotIDs[gr] = id
	return id
}

// apply takes in a discovery result: which kinds exist, and what each reference's kind resolves to.
func (ev Serving) apply(g *Graph) {
	for i := range g.slots {
		g.slots[i].served = false
	}
	resolved := make(map[typeKey]typeInfo, 2*len(ev.Resources))
	for _, r := range ev.Resources {
		id := g.slotOf(r.GroupResource())
		s := &g.slots[id]
		if s.Namespaced != r.Namespaced {
			g.incompleteState = "?" // owners of the kind may have dependents of other kinds now
		}
		s.Resource, s.served = r, true
		if r.Collected && s.state == Unwatched {
			s.state, s.reason = Listing, ""
		}
		for _, v := range r.Versions {
			k := typeKey{schema.GroupVersion{Group: r.Group, Version: v}.String(), r.Kind}
			before, twice := resolved[k]
			resolved[k] = typeInfo{slot: id, served: true, ambiguous: twice && (before.ambiguous || before.slot != id)}
		}
	}
	for k, t := range resolved {
		t.namespaced = g.slots[t.slot].Namespaced
		resolved[k] = t
	}
	g.resolved = resolved

	changed := map[uint32]bool{}
	g.types.each(func(id uint32, k typeKey) {
		if g.resolveType(id, k) {
			changed[id] = true
		}
	})
	if len(changed) > 0 {
		g.claims.each(func(id uint32, c *claim) {
			if changed[c.typ] {
				if c.looked != lookedAbsent || g.typeInfos[c.typ].slot == 0 {
					g.setLooked(id, lookedNot, "")
				}
				g.rejudge(id)
				g.markDependents(c) // where to look may be another place now
			}
		})
	}
	g.incompleteChanged()
}

// resolveType updates the resolution of a type and reports whether it changed.
func (g *Graph) resolveType(id uint32, k typeKey) bool {
	for int(id) >= len(g.typeInfos) {
		g.typeInfos = append(g.typeInfos, typeInfo{})
	}
	before := g.typeInfos[id]
	after, ok := g.resolved[k]
	if !ok && !g.slots[before.slot].served {
		after = typeInfo{slot: before.slot, namespaced: g.slots[before.slot].Namespaced}
	}
	g.typeInfos[id] = after
	return before != after
}

// listingKinds names the kinds whose first list is still expected; "" if there are none. For a
// namespaced owner it leaves out cluster-scoped kinds, which cannot depend on it.
func (g *Graph) listingKinds(namespacedOnly bool) string {
	return g.kindsThat(func(s *slot) bool { return s.listing() && (s.Namespaced || !namespacedOnly) })
}

// incompleteKinds names the kinds that may hold unseen dependents of an owner: those that are
// listing, fail or are behind, and those that are not served now and had objects that referred to
// it.
func (g *Graph) incompleteKinds(owner uint32) string {
	namespaced := g.slots[g.nodes.at(owner).slot].Namespaced
	return g.kindsThat(func(s *slot) bool {
		if s.away() {
			_, hidden := s.hidden[owner]
			return hidden
		}
		return s.Namespaced || !namespaced
	})
}

// kindsThat names the incomplete kinds for which count returns true, sorted.
func (g *Graph) kindsThat(count func(*slot) bool) string {
	if g.incompleteState == "" {
		return ""
	}
	var names []string
	for i := range g.slots {
		if s := &g.slots[i]; s.incomplete() && count(s) {
			names = append(names, s.missing())
		}
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// missing names an incomplete kind, with the reason unless that is only its first list.
func (s *slot) missing() string {
	name := s.GroupResource().String()
	switch {
	case s.away():
		return name + " (it is not served now, and objects of it referred to the owner when it was)"
	case s.state == Behind:
		return name + " (its watch is broken: " + s.reason + ")"
	case s.state == Failing:
		return name + " (it cannot be listed: " + s.reason + ")"
	}
	return name
}

// incompleteChanged looks which kinds are incomplete. Owners that are ending wait for them, and are
// marked if anything changed.
func (g *Graph) incompleteChanged() {
	before := g.incompleteState
	g.incompleteState = "?"
	if g.incompleteState = g.kindsThat(func(*slot) bool { return true }); g.incompleteState != before {
		for _, id := range slices.Sorted(maps.Keys(g.ending)) {
			g.mark(id)
		}
	}
	if g.rewound != "" && !slices.ContainsFunc(g.slots, func(s slot) bool { return s.listing() }) {
		g.relisted()
	}
}

// hideDependents notes the owners to which objects of a kind refer when its watch ends. A kind that
// is not served says nothing about its objects: all may be there when it is served again. Only if
// its definition goes are they known to be gone.
func (g *Graph) hideDependents(slotID uint32) {
	s := &g.slots[slotID]
	if s.undefined {
		return
	}
	if s.hidden == nil {
		s.hidden = map[uint32]struct{}{}
	}
	for _, n := range g.all() {
		if n.slot != slotID {
			continue
		}
		for _, e := range n.owners {
			if owner := g.claims.at(e.claim).owner; owner != 0 {
				s.hidden[owner] = struct{}{}
				g.hides = true
			}
		}
	}
}

// away reports whether the kind is not served, and had objects that referred to owners which are
// there.
func (s *slot) away() bool { return len(s.hidden) > 0 && (!s.served || !s.Collected) }

// forgetHidden forgets an owner that leaves the graph.
func (g *Graph) forgetHidden(owner uint32) {
	if !g.hides {
		return
	}
	for i := range g.slots {
		delete(g.slots[i].hidden, owner)
	}
}
