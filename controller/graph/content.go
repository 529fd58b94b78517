package graph

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// usual names the objects that Kubernetes itself puts into every namespace.
var usual = map[schema.GroupResource]string{
	{Resource: "configmaps"}:      "kube-root-ca.crt",
	{Resource: "serviceaccounts"}: "default",
}

// Usual reports whether Kubernetes itself puts an object into every namespace, and puts it back
// when it goes. A namespace that holds nothing else is empty.
func Usual(kind schema.GroupResource, name string) bool { return name != "" && usual[kind] == name }

// Instances counts the objects of a kind, and names some. It returns false if there may be more:
// the kind is served and its list is not complete, or discovery has not answered yet.
func (g *Graph) Instances(kind schema.GroupResource) (Counted, bool) {
	slotID := g.slotIDs[kind] // the first is no kind's
	return Counted{Kind: kind, Count: g.slots[slotID].nodes, Names: g.examples(slotID)}, g.complete(kind)
}

// Filled counts the contents of a namespace by kind, sorted, without what Kubernetes itself puts
// there, and names some. It returns false if there may be more, since a namespaced kind is not
// listed yet.
//
// The cost is a few steps for each kind in the namespace.
func (g *Graph) Filled(namespace string) ([]Counted, bool) {
	complete := g.knows(0, true)
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

// examples returns up to three sorted names of nodes of a kind, from among those near the one that
// was added last. Objects of a kind come in one list, so most of them are neighbours; where they are
// not, there are fewer examples.
func (g *Graph) examples(slotID uint32) (names []string) {
	near := g.slots[slotID].near
	last := min(near+mostScanned/2, g.nodes.next-1)
	for id := last; id > 0 && last-id < mostScanned && len(names) < someNames; id-- {
		if n := g.nodes.at(id); n.entry != 0 && n.slot == slotID {
			names = append(names, nsName(g.namespaces.val(n.namespace), n.name))
		}
	}
	slices.Sort(names)
	return names
}
