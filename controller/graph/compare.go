package graph

import (
	"strconv"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Standing is how the graph stands to an object as a live read showed it.
type Standing uint8

// The standings. Versions that are no numbers cannot be ordered, and count as Level.
const (
	Level     Standing = iota // the same, or the graph is ahead
	Missing                   // the graph has no such object: it has gone since, or was never taken in
	Different                 // the graph has an earlier version, or another object under the same version
)

// Compare tells how the graph stands to an object. Whether what is not Level is wrong, or only on
// its way, depends on how far the watch has come: that is for the caller to know.
func (g *Graph) Compare(o *Object) Standing {
	id := g.nodeOf(g.slotIDs[o.Kind], g.find(o.UID))
	if id == 0 {
		return Missing
	}
	mine, live := g.nodes.at(id).version, number(o.ResourceVersion)
	if mine != 0 && live != 0 && (mine < live || mine == live && !g.Shows(o)) {
		return Different
	}
	return Level
}

// Version is the resourceVersion that the graph has of an object; false if it has none.
func (g *Graph) Version(kind schema.GroupResource, uid types.UID) (string, bool) {
	id := g.nodeOf(g.slotIDs[kind], g.find(uid))
	if id == 0 {
		return "", false
	}
	return g.versionOf(id), true
}

// Unlisted copies up to n objects of a kind that a list did not show although they are not younger
// than it, from a cursor that starts at 0, and returns the next cursor, 0 at the end. One call
// looks at a bounded part of the graph.
func (g *Graph) Unlisted(kind schema.GroupResource, listed func(types.UID) bool, version uint64, from uint32, n int) ([]Ref, uint32) {
	const most = 1 << 14
	slotID := g.slotIDs[kind]
	if slotID == 0 {
		return nil, 0
	}
	var refs []Ref
	for id := max(from, 1); id < g.nodes.next; id++ {
		if len(refs) == n || id-from >= most {
			return refs, id
		}
		v := g.nodes.at(id)
		if v.entry != 0 && v.slot == slotID && v.version != 0 && v.version <= version && !listed(g.uidOf(v.entry)) {
			refs = append(refs, g.refOf(id))
		}
	}
	return refs, 0
}

// number is a resourceVersion as a number; 0 if it is none.
func number(version string) uint64 {
	v, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		return 0
	}
	return v
}
