package graph

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// inventory counts what a namespace holds, so that no question about it walks the graph.
type inventory struct {
	kinds      map[uint32]*contents // by slot; without those that are empty
	finalizers map[uint32]int32     // by finalizer list
}

// contents are the objects of one kind in a namespace. Each has its index among the nodes as its
// place.
type contents struct {
	nodes       []uint32
	terminating int32
	usual       int32 // those that Kubernetes itself puts into every namespace
}

// stock adds a node to the inventory of its namespace (1), or removes it (-1). Cluster-scoped
// objects are in none.
func (g *Graph) stock(id uint32, by int32) {
	n := g.nodes.at(id)
	if g.namespaces.val(n.namespace) == "" {
		return
	}
	inv := g.inventories[n.namespace]
	if inv == nil {
		inv = &inventory{kinds: map[uint32]*contents{}, finalizers: map[uint32]int32{}}
		g.inventories[n.namespace] = inv
	}
	c := inv.kinds[n.slot]
	if c == nil {
		c = &contents{}
		inv.kinds[n.slot] = c
	}
	if g.isUsual(n) {
		c.usual += by
	}
	g.countEnding(id, by)
	if by > 0 {
		n.place = uint32(len(c.nodes))
		c.nodes = append(c.nodes, id)
		return
	}
	g.takeFrom(c, n.place)
	if len(c.nodes) == 0 {
		delete(inv.kinds, n.slot)
	}
	if len(inv.kinds) == 0 {
		delete(g.inventories, n.namespace)
	}
}

// takeFrom removes the node at a place, and moves the last one there.
func (g *Graph) takeFrom(c *contents, place uint32) {
	last := c.nodes[len(c.nodes)-1]
	c.nodes[place] = last
	g.nodes.at(last).place = place
	c.nodes = c.nodes[:len(c.nodes)-1]
	if cap(c.nodes) > 1024 && len(c.nodes) < cap(c.nodes)/4 {
		c.nodes = slices.Clone(c.nodes) // slices never shrink
	}
}

// countEnding adds by to the counts of what may change about a node that stays where it is. It is
// called before (-1) and after (1) each such change.
func (g *Graph) countEnding(id uint32, by int32) {
	n := g.nodes.at(id)
	inv := g.inventories[n.namespace]
	if inv == nil {
		return
	}
	if n.flags&deleting != 0 {
		inv.kinds[n.slot].terminating += by
	}
	if n.finalizers != 0 {
		if inv.finalizers[n.finalizers] += by; inv.finalizers[n.finalizers] == 0 {
			delete(inv.finalizers, n.finalizers)
		}
	}
	if name := g.namespaces.val(n.namespace); len(g.draining) > 0 {
		if _, ok := g.draining[name]; ok {
			g.changed[name] = struct{}{}
		}
	}
}

// Inventory is what a namespace holds, as far as it has been seen.
type Inventory struct {
	Kinds      []KindCount    // sorted; kinds without objects are left out
	Finalizers map[string]int // how many objects carry each
}

// KindCount is how many objects of one kind there are.
type KindCount struct {
	Kind               schema.GroupResource
	Total, Terminating int
}

// Inventory returns what a namespace holds. Only kinds that are synced are complete.
func (g *Graph) Inventory(namespace string) Inventory {
	out := Inventory{Finalizers: map[string]int{}}
	inv := g.inventories[g.namespaces.ids[namespace]]
	if inv == nil {
		return out
	}
	for slotID, s := range inv.kinds {
		out.Kinds = append(out.Kinds, KindCount{g.slots[slotID].GroupResource(), len(s.nodes), int(s.terminating)})
	}
	slices.SortFunc(out.Kinds, func(a, b KindCount) int { return cmp.Compare(a.Kind.String(), b.Kind.String()) })
	for list, n := range inv.finalizers {
		for _, f := range unpack(g.finalizers.val(list)) {
			out.Finalizers[f] += int(n)
		}
	}
	return out
}

// ChangedNamespaces returns the namespaces under Draining whose inventory has changed since the
// last call, sorted.
func (g *Graph) ChangedNamespaces() []string {
	if len(g.changed) == 0 {
		return nil
	}
	names := slices.Sorted(maps.Keys(g.changed))
	clear(g.changed)
	return names
}

// apply starts or stops the reports of changes in a namespace.
func (ev Draining) apply(g *Graph) {
	if ev.On {
		g.draining[ev.Namespace] = struct{}{}
		return
	}
	delete(g.draining, ev.Namespace)
	delete(g.changed, ev.Namespace)
}

// Content returns up to n objects of a kind in a namespace. The cursor starts at 0, and the next
// one is 0 at the end. The cost is a step for each of them.
//
// An object that is there from the first call to the last is in one of the answers, and maybe in
// two. It cannot be missed, because the last object takes the place of one that goes and the walk
// is from the end to the beginning.
func (g *Graph) Content(namespace string, kind schema.GroupResource, from uint32, n int) ([]View, uint32) {
	slotID, inv := g.slotIDs[kind], g.inventories[g.namespaces.ids[namespace]]
	if inv == nil || inv.kinds[slotID] == nil {
		return nil, 0
	}
	nodes := inv.kinds[slotID].nodes
	at := len(nodes)
	if from != 0 {
		at = min(int(from), at)
	}
	var views []View
	for ; at > 0 && len(views) < n; at-- {
		views = append(views, g.view(nodes[at-1]))
	}
	return views, uint32(at)
}
