package shadow

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
)

// In these Weir differs from kube-controller-manager's collector on purpose. DESIGN.md has them by
// these names, and e2e/differential finds them by what is there under both; here they are told by
// what makes them.
const (
	besideUnresolvable = "an unresolvable reference keeps no dead one"
	judgedWhenWritten  = "references are judged whenever they change"
	duringForeground   = "dependents written during foreground deletion are judged"
	unsoundBlocks      = "an unsound reference blocks no owner"
	nothingBlocks      = "a foreground owner that nothing blocks goes"
	ownBlock           = "an object does not block itself"
	brokenCycle        = "a cycle of owners that wait for each other is broken"
	afterOrphaning     = "dependents written after orphaning are released"
	orphaningWaits     = "orphaning waits for complete lists"
	foregroundWaits    = "foreground deletion waits for first lists"
)

// onPurpose tells by which of them a decision is not carried out, as the graph is; "" if by none.
func onPurpose(g *graph.Graph, a graph.Action, v graph.View) string {
	own := slices.ContainsFunc(v.Owners, func(o graph.OwnerView) bool { return o.UID == v.UID })
	switch a.Verb {
	case graph.Release:
		if has(v, "unresolvable") && has(v, "present") { // kube-controller-manager tries to find out about all owners before it does anything
			return besideUnresolvable
		}
		if v = withOrphaned(g, v); has(v, orphaned) && !has(v, "orphaning") { // it released what it knew of; to all else the owner is just gone
			return afterOrphaning
		}
	case graph.Unfinalize: // it goes by the uid alone
		if _, blocked := g.Misnamed(v.UID); blocked && a.Finalizer == metav1.FinalizerDeleteDependents {
			return unsoundBlocks
		}
	case graph.Unblock: // it breaks cycles that what is not being deleted is part of
		switch {
		case own:
			return ownBlock
		case v.Deleting:
			return brokenCycle
		}
	}
	return ""
}

// unawaited tells on which of them an owner that is being deleted waits for dependents that Weir
// may not have seen; "" if it does not.
func unawaited(a graph.Action, v graph.View) string {
	switch {
	case !v.Deleting || a.Verb != graph.Wait || a.Unseen == "":
		return ""
	case v.Orphaning:
		return orphaningWaits
	}
	return foregroundWaits
}

// ends tells whether a write takes the finalizer off by which an owner waits for its dependents.
func ends(before graph.View, finalizers []string) bool {
	for _, f := range []string{metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents} {
		if slices.Contains(before.Finalizers, f) && !slices.Contains(finalizers, f) {
			return true
		}
	}
	return false
}

func has(v graph.View, verdict string) bool {
	return slices.ContainsFunc(v.Owners, func(o graph.OwnerView) bool { return o.Verdict == verdict })
}

// written tells which of them a write makes: of an object that kube-controller-manager does not
// look at again for that write, because all references that are new in it are to owners that it
// knows by the same kind and name. before are the references until then.
func written(before []graph.OwnerView, v graph.View) string {
	for _, o := range v.Owners {
		known := slices.ContainsFunc(before, func(b graph.OwnerView) bool { return b.UID == o.UID })
		if !known && o.Verdict != "present" && o.Verdict != "waiting" {
			return ""
		}
	}
	switch {
	case has(v, "waiting"):
		return duringForeground
	case before != nil:
		return judgedWhenWritten
	}
	return ""
}

// missed are the owners that a write has an object block no more, and at which
// kube-controller-manager does not look again for it: of references with one uid it compares the
// last, and that one did not block before. before are the references until then.
func missed(before []graph.OwnerView, now []metav1.OwnerReference) (owners []types.UID) {
	if len(before) < 2 {
		return nil
	}
	blocks := func(r metav1.OwnerReference) bool { return r.BlockOwnerDeletion != nil && *r.BlockOwnerDeletion }
	last := map[types.UID]bool{} // whether it blocks
	for _, o := range before {
		last[o.UID] = blocks(o.OwnerReference)
	}
	for _, o := range before {
		if blocks(o.OwnerReference) && !last[o.UID] && !slices.Contains(owners, o.UID) &&
			!slices.ContainsFunc(now, func(r metav1.OwnerReference) bool { return r.UID == o.UID && blocks(r) }) {
			owners = append(owners, o.UID)
		}
	}
	return owners
}

// orphaned is the verdict of an owner that is gone and let its dependents go. The graph calls it
// orphaning, as long as it remembers.
const orphaned = "orphaned"

// withOrphaned tells owners that are gone after orphaning from those that are still there.
func withOrphaned(g *graph.Graph, v graph.View) graph.View {
	for i := range v.Owners {
		if v.Owners[i].Verdict == "orphaning" {
			if _, there := g.Find(v.Owners[i].UID); !there {
				v.Owners[i].Verdict = orphaned
			}
		}
	}
	return v
}
