package enforce

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/controller/graph"
)

// carrying says of kinds of which every object is to carry the finalizer for one policy how many
// objects there are, and how many carry it: what watches tell is not listed again for that.
type carrying map[schema.GroupResource]*carriers

type carriers struct {
	by, except     string // the policy, and the namespace that it is not about
	there          int
	carry, leaving int // leaving: of those that carry it, being deleted
}

// countAll counts the objects of such kinds that have changed, when a look back is due. What
// carries the finalizer is found afterwards: an object that comes in between is a change that the
// next pass sees.
func (p *pass) countAll(kinds []graph.KindStats) carrying {
	out := carrying{}
	if p.seen == nil || !p.seen.rested {
		return out
	}
	for _, k := range kinds {
		kind := k.GroupResource()
		by, except := p.set.FinalizerOfAll(kind)
		if by == "" || !k.Collected || k.State != graph.Synced || p.seen.tallies[kind] == nil || !p.set.SameDeletions(kind, p.seen.set) {
			continue
		}
		p.changes[kind], _ = p.store.Changes(kind)
		var all graph.Counted
		var complete bool
		p.store.Read(func(g *graph.Graph) { all, complete = g.Instances(kind) })
		if !complete {
			continue
		}
		c := &carriers{by: by, except: except, there: all.Count}
		if except != "" && k.Namespaced {
			for _, there := range p.store.Inventory(except).Kinds {
				if there.Kind == kind {
					c.there -= there.Total
				}
			}
		}
		out[kind] = c
	}
	return out
}

// found counts an object that carries the finalizer.
func (c carrying) found(v graph.View) {
	of := c[v.Kind]
	if of == nil || of.except != "" && v.Namespace == of.except {
		return
	}
	of.carry++
	if v.Deleting {
		of.leaving++
	}
}

// allCarry tells whether every object of a kind carries what it is to carry, as the graph has it;
// then they are counted.
func (p *pass) allCarry(kind schema.GroupResource, carry carrying) bool {
	c := carry[kind]
	if c == nil || c.carry != c.there {
		return false
	}
	n := int64(c.carry - c.leaving)
	p.begin(kind)
	p.count(kind, c.by, tally{n, n}, &listed{})
	return true
}
