package graph

import (
	"cmp"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Basis is what another collector's delete of an object rests on, as far as this graph knows.
type Basis struct {
	Object     Ref
	Dependents int32
	// Inference is zero if an owner was seen to be deleted. If Settled is false, it is what the
	// delete is inferred from if this graph learns nothing more.
	Inference Inference
	// Settled is true if all owners are gone, or wait for the object. If not, an owner is there or
	// is not known: this graph is behind, or the other collector knows better, or is wrong.
	Settled bool
}

// BasisOf returns what a delete of an object by another collector rests on. It is zero if the
// object is not in the graph, or has no owners. While everything is listed again, nothing is
// settled.
func (g *Graph) BasisOf(uid types.UID) Basis {
	for id, n := range g.nodesOf(g.find(uid)) {
		if len(n.owners) == 0 {
			continue
		}
		b := Basis{Object: g.refOf(id), Dependents: n.dependents, Settled: g.rewound == ""}
		b.Inference = g.inference(n)
		if open := g.openOwner(n); open != nil {
			b.Settled = false
			if b.Inference.Conclusion == Asked {
				b.Inference = Inference{Conclusion: OwnerNotFound, Owners: g.kindOfClaim(open.claim)}
			}
		}
		return b
	}
	return Basis{}
}

// openOwner returns the first reference whose owner is not known to be gone or waiting; nil if
// there is none.
func (g *Graph) openOwner(n *node) *edge {
	for i := range n.owners {
		if v := g.claims.at(n.owners[i].claim).verdict; v != absent && v != waiting {
			return &n.owners[i]
		}
	}
	return nil
}

// kindOfClaim returns the kind that a claim means, or one made of its words if the cluster serves
// none.
func (g *Graph) kindOfClaim(id uint32) schema.GroupResource {
	c := g.claims.at(id)
	if slotID := g.typeInfos[c.typ].slot; slotID != 0 {
		return g.slots[slotID].GroupResource()
	}
	t := g.types.val(c.typ)
	gv, _ := schema.ParseGroupVersion(t.apiVersion)
	return schema.GroupResource{Group: gv.Group, Resource: strings.ToLower(cmp.Or(t.kind, "unknown"))}
}
