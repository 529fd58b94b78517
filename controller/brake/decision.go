package brake

import (
	"fmt"

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
