package graph

import "strconv"

// Standing is how the graph's view of an object relates to a live read of it.
type Standing uint8

// The standings. Versions that are no numbers cannot be ordered, and count as Level.
const (
	Level     Standing = iota // the same, or the graph is ahead
	Missing                   // the graph has no such object: it went since, or was never seen
	Different                 // the graph has an earlier version, or other content in the same version
)

// Compare returns how the graph stands to an object. The caller knows how far the watch has come,
// and so whether what is not Level is wrong or only on its way.
func (g *Graph) Compare(o *Object) Standing {
	id := g.nodeOf(g.slotIDs[o.Kind], g.find(o.UID))
	if id == 0 {
		return Missing
	}
	mine, live := g.nodes.at(id).version, VersionNumber(o.ResourceVersion)
	if mine != 0 && live != 0 && (mine < live || mine == live && !g.Shows(o)) {
		return Different
	}
	return Level
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
