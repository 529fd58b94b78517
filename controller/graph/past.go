package graph

import (
	"fmt"
	"strconv"
)

// Contradicts says why an object, as a later list shows it, cannot come after what was seen of it:
// it was seen to go, or at a later resourceVersion. "" if it can. So it is after a restore, also if
// that made resourceVersions go on from where they were.
func (g *Graph) Contradicts(o *Object) string {
	if slot, went := g.recentlyDeleted.slotOf(o.UID); went && slot == g.slotIDs[o.Kind] {
		return fmt.Sprintf("%s is there again after its deletion was seen, under the same uid", nsName(o.Namespace, o.Name))
	}
	entryID := g.find(o.UID)
	slotID := g.slotIDs[o.Kind]
	if entryID == 0 || slotID == 0 {
		return ""
	}
	id := g.nodeOf(slotID, entryID)
	if id == 0 {
		return ""
	}
	seen := g.nodes.at(id).version
	version, err := strconv.ParseUint(o.ResourceVersion, 10, 64)
	if err != nil || seen <= version {
		return ""
	}
	return fmt.Sprintf("%s has resourceVersion %d, and was seen at %d before", nsName(o.Namespace, o.Name), version, seen)
}
