package graph

import (
	"cmp"
	"fmt"
	"strconv"
)

// History returns how often the API server's history has gone back.
func (g *Graph) History() uint32 { return g.history }

// apply forgets everything that was seen. Until every kind has been listed again, only lookups are
// made.
func (ev Rewound) apply(g *Graph) {
	for id := range g.all() {
		g.remove(id)
	}
	g.orphaned, g.recentlyDeleted, g.remembered = newTombstones(maxOrphaned), newTombstones(maxRecentlyDeleted),
		newTombstones(MostRemembered)
	g.history++
	g.rewound = cmp.Or(ev.Reason, "the API server's history went back")
	for i := range g.slots {
		s := &g.slots[i]
		if s.state == Unwatched {
			continue
		}
		s.state, s.reason = Unwatched, ""
		if s.served && s.Collected {
			s.state = Listing
		}
	}
	g.incompleteChanged()
}

// apply forgets which owners of one kind are absent, and all lookups under way: an answer may
// be of the old storage. It does not forget which owners orphaned their dependents, or these would
// be collected if the owner is not there again.
func (ev KindRewound) apply(g *Graph) {
	slotID := g.slotOf(ev.Kind)
	g.history++
	g.recentlyDeleted, g.remembered = newTombstones(maxRecentlyDeleted), newTombstones(MostRemembered)
	g.claims.each(func(id uint32, c *claim) {
		if c.looked == lookedNow || c.looked != lookedNot && g.typeInfos[c.typ].slot == slotID {
			delete(g.ended, id)
			g.forgetLookup(id)
		}
	})
}

// relisted ends a rewind: everything is decided again.
func (g *Graph) relisted() {
	g.rewound = ""
	for id, n := range g.all() {
		if !g.quiet(n) {
			g.mark(id)
		}
	}
}

// Rewinding returns why everything is being listed again; "" if it is not.
func (g *Graph) Rewinding() string { return g.rewound }

// Contradicts returns why an object in a later list cannot follow what was seen of it: its
// deletion, or a later resourceVersion. It returns "" if it can. A contradiction means a restore,
// even if resourceVersions went on from where they were.
func (g *Graph) Contradicts(o *Object) string {
	if slot, went := g.recentlyDeleted.slotOf(o.UID); went && slot == g.slotIDs[o.Kind] {
		return fmt.Sprintf("%s is there again after its deletion was seen, under the same uid", nsName(o.Namespace, o.Name))
	}
	seen, version := g.nodes.at(g.nodeIn(o.Kind, o.UID)).version, VersionNumber(o.ResourceVersion)
	if version == 0 || seen <= version {
		return ""
	}
	return fmt.Sprintf("%s has resourceVersion %d, and was seen at %d before", nsName(o.Namespace, o.Name), version, seen)
}

// VersionNumber returns a resourceVersion as a number, which orders the events of one kind; 0 if it
// is none.
func VersionNumber(resourceVersion string) uint64 {
	v, err := strconv.ParseUint(resourceVersion, 10, 64)
	if err != nil {
		return 0
	}
	return v
}
