package brake

import (
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/words"
	"github.com/weir-dev/weir/policies/v1beta1"
)

// decide carries out a person's decision, once, and reports whether it did.
func (k *keeper) decide(r *record, spec v1beta1.HeldCollectionSpec) bool {
	proceeds := spec.Decision == v1beta1.ProceedHeld
	if !proceeds && spec.Decision != v1beta1.DiscardHeld || spec == r.applied {
		return false
	}
	items := r.sets.of(spec.Digest)
	if why := r.undoable(spec, items); why != "" {
		r.outcome = why
		return false
	}
	if !k.carryOut(r, items, proceeds) {
		return false
	}
	requeue := k.requeue
	if r.requested {
		requeue = k.requeueRequested
	}
	for _, i := range items {
		requeue(i.uid)
	}
	r.applied = spec
	what := "deleted"
	if !proceeds {
		what = "kept, and released from owners that are gone"
	}
	r.outcome = fmt.Sprintf("A person decided about the digest %[3]s: %[1]s %[2]s.",
		words.Count(len(items), "object is", "objects are"), what, spec.Digest)
	k.Log.Info("a person has decided", "name", r.String(), "decision", string(spec.Decision), "digest", spec.Digest,
		"objects", len(items))
	return true
}

// undoable returns why a decision about some objects cannot be carried out; "" if it can.
func (r *record) undoable(spec v1beta1.HeldCollectionSpec, items []item) string {
	switch {
	case r.requested && spec.Decision == v1beta1.DiscardHeld:
		return "Nothing was done: these objects were deleted by request, and Discard cannot take that back. " +
			"To keep what depends on one, delete it again with --cascade=orphan."
	case len(items) == 0:
		return fmt.Sprintf("Nothing was done: the decision is about the digest %s, and what is held has another, because "+
			"Weir was restarted, the cluster was restored, or more would be deleted by now. Look again, and decide about the "+
			"digest in the status.", spec.Digest)
	}
	return ""
}

// carryOut lets objects go, or keeps them. It does nothing and returns false if the history went
// back since this look began, which voids decisions.
func (k *keeper) carryOut(r *record, items []item, proceeds bool) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.history != k.Brake.history:
		return false
	case r.requested:
		k.proceed(items)
	case !proceeds:
		for _, i := range items {
			k.discarded[i.uid] = r.kind
		}
	default:
		k.ledger.Decided(r.kind, uidsOf(items))
	}
	return true
}

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
