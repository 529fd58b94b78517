package enforce

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/words"
	"github.com/weir-dev/weir/policies"
	"github.com/weir-dev/weir/policies/v1beta1"
)

// deletionState is all that the next step of the deletion of an object with the finalizer depends
// on.
type deletionState struct {
	enforcement policies.Enforcement
	finalizers  []string
	dependents  []graph.View
	// unlisted names the kinds that may hold dependents that are not seen.
	unlisted string
	// collects: Weir's own collector carries out the propagation, and itself waits for such kinds.
	collects bool
	// alone: nothing refers to the object, and all kinds that could have been listed.
	alone bool
	// goes is how many objects would also be deleted, if a policy limits that. held: they are too
	// many, and no person has decided.
	goes int
	held bool
	// uncounted: goes may be too low, since kinds are still being listed.
	uncounted bool
	// unrecorded is why it waits to be recorded. recordingFailed: the last attempt failed.
	unrecorded      string
	recordingFailed bool
	// referred: an object that was seen refers to this one.
	referred bool
	// given: it was deleted with its propagation before.
	given bool
	// late: it has waited for kinds that were not listed, which the built-in collector may not see
	// yet.
	late bool
}

// deletionStep is one of: wait, release dependents, delete with a propagation, or, if all are
// empty, remove the finalizer.
type deletionStep struct {
	wait        bool
	late        bool // wait: see deletionState
	soon        bool // wait: only for Weir, so no user is told
	release     []graph.View
	propagation metav1.DeletionPropagation
	why         string
}

// nextStep returns the next step.
//
//	policies undecided                        wait
//	more would go than a limit allows         wait, until a person has decided, or fewer would go
//	more may go: kinds are still listed       wait
//	it has to be recorded first               wait
//	some dependents are to be kept            wait for the lists of all kinds, then release them
//	Orphan is under way, or was carried out   if the built-in collector does it, which does not wait
//	                                          for what it does not see: wait for the lists of all
//	                                          kinds, then release the dependents that are left
//	nothing refers to it                      remove the finalizer
//	the propagation is not in the finalizers  delete with it, once; with Orphan again while something
//	                                          refers to it: a client, and not the collector that
//	                                          releases dependents, removed the orphan finalizer
//	else                                      remove the finalizer: the collector does the rest
func nextStep(s deletionState) deletionStep {
	by := "no policy says otherwise"
	if s.enforcement.By != "" {
		by = fmt.Sprintf("DeletionPolicy %q", s.enforcement.By)
	}
	if s.enforcement.Undecided {
		return deletionStep{wait: true, why: "the deletion is held: a policy with failurePolicy Fail may apply, and " +
			"cannot be judged: " + problems(s.enforcement.Errors)}
	}
	if l := s.enforcement.Limit; l != nil {
		switch {
		case s.held:
			return deletionStep{wait: true, why: fmt.Sprintf("the deletion is held until a person decides (kubectl get held "+
				"-o wide): %s would also be deleted, and DeletionPolicy %q allows %d", words.Count(s.goes, "object", "objects"),
				l.By, l.Most)}
		case s.uncounted:
			return deletionStep{wait: true, why: fmt.Sprintf("the deletion is held: DeletionPolicy %q limits what is deleted "+
				"with it, and not all kinds are listed yet: %s", l.By, s.unlisted)}
		}
	}
	if s.unrecorded != "" {
		return deletionStep{wait: true, soon: !s.recordingFailed, why: s.unrecorded}
	}
	want := s.enforcement.Propagation
	if want != v1beta1.Orphan && s.enforcement.KeepsSome() {
		if s.unlisted != "" {
			return deletionStep{wait: true, why: "the deletion is held: some dependents are to be " +
				"kept (" + by + "), and not all kinds are listed yet: " + s.unlisted}
		}
		if kept := s.left(s.enforcement.Keeps); len(kept) > 0 {
			return deletionStep{release: kept, why: keeps(kept, by)}
		}
	}
	left := s.left(func(schema.GroupResource) bool { return true })
	underWay := want != v1beta1.Background && slices.Contains(s.finalizers, finalizerOf(want))
	switch {
	case want == v1beta1.Orphan && (underWay || s.given) && s.unlisted != "" && !s.collects:
		return deletionStep{wait: true, late: true, why: "the deletion is held: dependents are to be " +
			"kept (" + by + "), and not all kinds are listed yet: " + s.unlisted}
	case want == v1beta1.Orphan && s.late && len(left) > 0:
		return deletionStep{release: left, why: keeps(left, by)}
	case want == v1beta1.Background:
		return deletionStep{why: "Background: " + by}
	case underWay:
		return deletionStep{why: fmt.Sprintf("%s is under way: %s", want, by)}
	case s.alone:
		return deletionStep{why: fmt.Sprintf("nothing refers to it, so there is nothing to do for %s: %s", want, by)}
	case s.given && (want != v1beta1.Orphan || !s.referred):
		return deletionStep{why: fmt.Sprintf("%s has been carried out: %s", want, by)}
	}
	return deletionStep{propagation: metav1.DeletionPropagation(want), why: by}
}

// braked reports whether a limit holds the deletion.
func (s *deletionState) braked() bool {
	return s.enforcement.Undecided || s.enforcement.Limit != nil && (s.held || s.uncounted)
}

// left returns the dependents of some kinds that have still to be released.
func (s *deletionState) left(of func(schema.GroupResource) bool) []graph.View {
	return slices.DeleteFunc(slices.Clone(s.dependents), func(d graph.View) bool { return d.Accepted || !of(d.Kind) })
}

func keeps(dependents []graph.View, by string) string {
	return fmt.Sprintf("%s to be kept (%s)", words.Count(len(dependents), "dependent is", "dependents are"), by)
}

// finalizerOf returns the finalizer by which the API server records a propagation policy (RB 6.2).
func finalizerOf(p v1beta1.PropagationPolicy) string {
	if p == v1beta1.Orphan {
		return metav1.FinalizerOrphanDependents
	}
	return metav1.FinalizerDeleteDependents
}

func problems(errs []policies.PolicyError) string {
	texts := make([]string, len(errs))
	for i, e := range errs {
		texts[i] = e.String()
	}
	return strings.Join(texts, "; ")
}
