package graph

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// usual names the objects that Kubernetes itself puts into every namespace, and puts back when they
// go. A namespace that holds nothing else is empty.
var usual = map[schema.GroupResource]string{
	{Resource: "configmaps"}:      "kube-root-ca.crt",
	{Resource: "serviceaccounts"}: "default",
}

// Instances counts the objects of a kind, and names some. It returns false if there may be more:
// the kind is served and its list is not complete, or discovery has not answered yet.
func (g *Graph) Instances(kind schema.GroupResource) (Counted, bool) {
	slotID := g.slotIDs[kind] // the first is no kind's
	s := &g.slots[slotID]
	return Counted{Kind: kind, Count: s.nodes, Names: g.examples(s.near, mostScanned, func(n *node) (string, bool) {
		return nsName(g.namespaces.val(n.namespace), n.name), n.slot == slotID
	})}, g.complete(kind)
}

// Filled counts the contents of a namespace by kind, sorted, without what Kubernetes itself puts
// there, and names some. It returns false if there may be more, since a namespaced kind is not
// listed yet.
//
// The cost is a few steps for each kind in the namespace.
func (g *Graph) Filled(namespace string) ([]Counted, bool) {
	complete := g.resolved != nil && g.listingKinds(true) == ""
	ns := g.namespaces.ids[namespace]
	inv := g.inventories[ns]
	if inv == nil {
		return nil, complete
	}
	var out []Counted
	for slotID, s := range inv.kinds {
		f := Counted{Kind: g.slots[slotID].GroupResource(), Count: len(s.nodes) - int(s.usual)}
		if f.Count == 0 {
			continue
		}
		for _, id := range s.nodes {
			if n := g.nodes.at(id); len(f.Names) < someNames && !g.isUsual(n) {
				f.Names = append(f.Names, nsName("", n.name))
			}
			if len(f.Names) == someNames {
				break
			}
		}
		slices.Sort(f.Names)
		out = append(out, f)
	}
	sortCounted(out)
	return out, complete
}

func (g *Graph) isUsual(n *node) bool {
	u := g.slots[n.slot].usual
	return u != "" && u == n.name
}

// mostScanned bounds how many nodes examples looks at: far below a millisecond.
const mostScanned = 4096

// examples returns up to three sorted names of nodes near around for which of returns true. Objects
// of one kind and namespace come in one list, or soon after each other, so most of them are
// neighbours; where they are not, there are fewer examples.
func (g *Graph) examples(around uint32, budget int, of func(*node) (string, bool)) []string {
	var names []string
	look := func(id uint32) {
		if id == 0 || id >= g.nodes.next || len(names) == someNames || budget == 0 {
			return
		}
		budget--
		if n := g.nodes.at(id); n.entry != 0 {
			if name, ok := of(n); ok {
				names = append(names, name)
			}
		}
	}
	if around == 0 {
		return nil
	}
	look(around)
	for step := uint32(1); budget > 0 && len(names) < someNames && (step < around || around+step < g.nodes.next); step++ {
		look(around + step)
		look(around - min(step, around))
	}
	slices.Sort(names)
	return names
}
