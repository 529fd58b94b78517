package graph

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// inventory counts what a namespace holds, as it changes: nobody has to walk the graph to ask what is
// left in a namespace.
type inventory struct {
	kinds      map[uint32]tally // by slot
	finalizers map[uint32]int32 // by finalizer list
}

type tally struct {
	total, terminating int32
	usual              int32  // those that Kubernetes itself puts into every namespace
	near               uint32 // the node that came last: there, or near it, are examples
}

// stock counts a node in or out of the inventory of its namespace: called before and after each change
// to what is counted of it. Cluster-scoped objects are in none.
func (g *Graph) stock(id uint32, by int32) {
	n := g.nodes.at(id)
	name := g.namespaces.val(n.namespace)
	if name == "" {
		return
	}
	inv := g.inventories[n.namespace]
	if inv == nil {
		inv = &inventory{kinds: map[uint32]tally{}, finalizers: map[uint32]int32{}}
		g.inventories[n.namespace] = inv
	}
	t := inv.kinds[n.slot]
	t.total += by
	if n.flags&deleting != 0 {
		t.terminating += by
	}
	if g.isUsual(n) {
		t.usual += by
	}
	if by > 0 {
		t.near = id
	}
	if t.total == 0 {
		t = tally{}
	}
	setOrDelete(inv.kinds, n.slot, t)
	if n.finalizers != 0 {
		setOrDelete(inv.finalizers, n.finalizers, inv.finalizers[n.finalizers]+by)
	}
	if len(inv.kinds) == 0 {
		delete(g.inventories, n.namespace)
	}
	if _, ok := g.draining[name]; ok {
		g.touched[name] = struct{}{}
	}
}

func setOrDelete[K, V comparable](m map[K]V, k K, v V) {
	var zero V
	if v == zero {
		delete(m, k)
	} else {
		m[k] = v
	}
}

// Inventory is what a namespace holds, as far as the graph has seen.
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
	for s, t := range inv.kinds {
		out.Kinds = append(out.Kinds, KindCount{g.slots[s].GroupResource(), int(t.total), int(t.terminating)})
	}
	slices.SortFunc(out.Kinds, func(a, b KindCount) int { return cmp.Compare(a.Kind.String(), b.Kind.String()) })
	for list, n := range inv.finalizers {
		for _, f := range unpack(g.finalizers.val(list)) {
			out.Finalizers[f] += int(n)
		}
	}
	return out
}

// Touched returns the namespaces under Draining whose inventory has changed since the last call, sorted.
func (g *Graph) Touched() []string {
	if len(g.touched) == 0 {
		return nil
	}
	names := slices.Sorted(maps.Keys(g.touched))
	clear(g.touched)
	return names
}

// drain begins or ends telling of changes in a namespace.
func (g *Graph) drain(ev Draining) {
	if ev.On {
		g.draining[ev.Namespace] = struct{}{}
		return
	}
	delete(g.draining, ev.Namespace)
	delete(g.touched, ev.Namespace)
}

// Content copies up to n objects of a kind in a namespace, from a cursor that starts at 0, and returns
// the next cursor, 0 at the end. One call looks at a bounded part of the graph, whatever it finds.
func (g *Graph) Content(namespace string, kind schema.GroupResource, from uint32, n int) ([]View, uint32) {
	const most = 1 << 16
	slotID, ns := g.slotIDs[kind], g.namespaces.ids[namespace]
	if ns == 0 || slotID == 0 {
		return nil, 0
	}
	var views []View
	for id := max(from, 1); id < g.nodes.next; id++ {
		if len(views) == n || id-from >= most {
			return views, id
		}
		if v := g.nodes.at(id); v.entry != 0 && v.slot == slotID && v.namespace == ns {
			views = append(views, g.view(id))
		}
	}
	return views, 0
}
