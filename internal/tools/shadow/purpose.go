package shadow

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
)

// The differences on purpose from kube-controller-manager's collector. DESIGN.md lists them by
// these names. e2e/differential recognises them by the state of both clusters; this file does by
// their cause.
const (
	besideUnresolvable = "an unresolvable reference keeps no dead one"
	judgedWhenWritten  = "references are judged whenever they change"
	duringForeground   = "dependents written during foreground deletion are judged"
	unsoundBlocks      = "an unsound reference blocks no owner"
	nothingBlocks      = "a foreground owner that nothing blocks goes"
	ownBlock           = "an object does not block itself"
	brokenCycle        = "a cycle of owners that wait for each other is broken"
	afterOrphaning     = "dependents written after orphaning are released"
)

// onPurpose returns the difference on purpose because of which the cluster does not carry a
// decision out, in the graph's present state; "" if there is none.
func onPurpose(g *graph.Graph, a graph.Action, v graph.View) string {
	own := slices.ContainsFunc(v.Owners, func(o graph.OwnerView) bool { return o.UID == v.UID })
	switch a.Verb {
	case graph.Release:
		if has(v, "unresolvable") && has(v, "present") { // kube-controller-manager looks up all owners before it acts
			return besideUnresolvable
		}
		// It released the dependents that it knew; to all others the owner is just gone.
		if v = withOrphaned(g, v); has(v, orphaned) && !has(v, "orphaning") {
			return afterOrphaning
		}
	case graph.Unfinalize: // kube-controller-manager compares the uid alone
		if _, blocked := g.Misnamed(v.UID); blocked && a.Finalizer == metav1.FinalizerDeleteDependents {
			return unsoundBlocks
		}
	case graph.Unblock: // kube-controller-manager breaks only cycles with a member that is not being deleted
		switch {
		case own:
			return ownBlock
		case v.Deleting:
			return brokenCycle
		}
	}
	return ""
}

func has(v graph.View, verdict string) bool {
	return slices.ContainsFunc(v.Owners, func(o graph.OwnerView) bool { return o.Verdict == verdict })
}

// written returns the difference on purpose that a write of references makes.
// kube-controller-manager does not look at the object again for such a write if all its new
// references are to owners that it knows by the same kind and name. before are the references until
// then.
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

// missed returns the owners that a write makes an object block no more, but that
// kube-controller-manager does not check again: of several references with one uid it compares only
// the last, which did not block before. before are the references until then.
func missed(before []graph.OwnerView, now []metav1.OwnerReference) (owners []types.UID) {
	if len(before) < 2 {
		return nil
	}
	blocks := func(r metav1.OwnerReference) bool { return r.BlockOwnerDeletion != nil && *r.BlockOwnerDeletion }
	last := map[types.UID]bool{} // whether the last reference blocks
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

// orphaned is the verdict of an owner that is gone and has orphaned its dependents. The graph calls
// it orphaning as long as it remembers.
const orphaned = "orphaned"

// withOrphaned sets the verdict orphaned for owners that the graph calls orphaning and that are
// gone.
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
