package graph

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Seen is what is known about the object with a uid. It is zero if that is nothing.
type Seen struct {
	Answer    Answer
	Kind      schema.GroupKind // of the object that is Present, and so below
	Namespace string
	Name      string
}

// Owner looks up the object with the uid of a reference, which is in a dependent in a namespace.
// One that is Present may be another than the reference says.
//
// Absent is certain: the watch showed the deletion, or a live read did for a reference with the
// same meaning.
func (g *Graph) Owner(ref metav1.OwnerReference, namespace string) Seen {
	if id := g.bestMatch(ref); id != 0 {
		n := g.nodes.at(id)
		s := &g.slots[n.slot]
		return Seen{Present, schema.GroupKind{Group: s.Group, Kind: s.Kind}, g.namespaces.val(n.namespace), n.name}
	}
	if g.recentlyDeleted.has(ref.UID) {
		return Seen{Answer: Absent}
	}
	t := g.resolved[typeKey{ref.APIVersion, ref.Kind}]
	seen := Seen{}
	g.alike(Claim{
		Namespace: namespace, Name: ref.Name, UID: ref.UID,
		Resource: g.slots[t.slot].GroupResource(), Namespaced: t.namespaced,
	}, func(_ uint32, c *claim) {
		// An owner that was lost while it orphaned its dependents is not absent: it may be there
		// yet.
		if c.verdict == absent {
			seen.Answer = Absent
		}
	})
	return seen
}

// bestMatch returns the node that is most like what a reference says; 0 if there is none.
func (g *Graph) bestMatch(ref metav1.OwnerReference) uint32 {
	t := g.resolved[typeKey{ref.APIVersion, ref.Kind}]
	return cmp.Or(g.nodeOf(t.slot, g.find(ref.UID)), g.newest(ref.UID))
}

// Depends reports whether an object depends on another, directly or through others. Only references
// whose owner is there exactly as they say count. After most references it gives up, and returns
// false.
func (g *Graph) Depends(dependent, on types.UID, most int) bool {
	from, to := g.find(dependent), g.find(on)
	if from == 0 || to == 0 {
		return false
	}
	seen := map[uint32]bool{}
	todo := []uint32{from} // entries
	for len(todo) > 0 && most > 0 {
		id := g.entries.at(todo[len(todo)-1]).node
		todo = todo[:len(todo)-1]
		for ; id != 0; id = g.next(id) {
			for _, e := range g.nodes.at(id).owners {
				c := g.claims.at(e.claim)
				most--
				switch {
				case c.owner == 0 || seen[c.entry]:
				case c.entry == to:
					return true
				default:
					seen[c.entry] = true
					todo = append(todo, c.entry)
				}
			}
		}
	}
	return false
}

// ServedKind is what discovery says about a kind in one version.
type ServedKind struct {
	Known      bool // discovery has answered
	Served     bool
	Namespaced bool
	Resources  []schema.GroupResource // sorted; more than one if several share the kind
}

// ServedKind looks up a kind in the last discovery result.
func (g *Graph) ServedKind(gvk schema.GroupVersionKind) ServedKind {
	out := ServedKind{Known: g.resolved != nil}
	t := g.resolved[typeKey{gvk.GroupVersion().String(), gvk.Kind}]
	if !t.served {
		return out
	}
	out.Served, out.Namespaced = true, t.namespaced
	for i := range g.slots {
		s := &g.slots[i]
		if s.served && s.Group == gvk.Group && s.Kind == gvk.Kind && slices.Contains(s.Versions, gvk.Version) {
			out.Resources = append(out.Resources, s.GroupResource())
			out.Namespaced = out.Namespaced || s.Namespaced
		}
	}
	slices.SortFunc(out.Resources, func(a, b schema.GroupResource) int { return cmp.Compare(a.String(), b.String()) })
	return out
}
