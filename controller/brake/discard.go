package brake

import (
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
)

// discarded holds the garbage that a person has decided to keep, by the kind of owners for which it
// was held. An object stays in it until it names no owner that is gone, and the hold lasts as long.
// Otherwise the object would be ordinary garbage then.
type discarded map[types.UID]schema.GroupResource

// discards reports whether a person has decided to keep an object, and then has it released from
// its owners like one that a policy protects. That is about this version of the object: after an
// edit it is asked about again.
func (b *Brake) discards(a graph.Action) bool {
	b.mu.Lock()
	owners, yes := b.discarded[a.Object.UID]
	b.mu.Unlock()
	if yes {
		b.Store.Apply(graph.Protected{Object: a.Object,
			Why: fmt.Sprintf("a person has decided so: HeldCollection %q", owners)})
	}
	return yes
}

// releasing returns how many objects that were discarded for a kind of owners are not released yet,
// and forgets the others.
func (b *Brake) releasing(owners schema.GroupResource) (n int) {
	b.mu.Lock()
	all := maps.Clone(b.discarded)
	b.mu.Unlock()
	for uid, of := range all {
		if of != owners {
			continue
		}
		var a graph.Action
		b.Store.Read(func(g *graph.Graph) { a = g.Decide(uid) })
		if a.Kept != "" || a.Verb == graph.Delete || a.Verb == graph.Lookup || a.Verb == graph.Wait {
			n++
			continue
		}
		b.mu.Lock() // it is gone, was released, or another owner keeps it
		delete(b.discarded, uid)
		b.mu.Unlock()
	}
	return n
}
