package graph

import (
	"fmt"
	"strconv"
)

// Contradicts returns why an object in a later list cannot follow what was seen of it: its
// deletion, or a later resourceVersion. It returns "" if it can. A contradiction means a restore,
// even if resourceVersions went on from where they were.
func (g *Graph) Contradicts(o *Object) string {
	if slot, went := g.recentlyDeleted.slotOf(o.UID); went && slot == g.slotIDs[o.Kind] {
		return fmt.Sprintf("%s is there again after its deletion was seen, under the same uid", nsName(o.Namespace, o.Name))
	}
	seen := g.nodes.at(g.nodeIn(o.Kind, o.UID)).version
	version, err := strconv.ParseUint(o.ResourceVersion, 10, 64)
	if err != nil || seen <= version {
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
