package graph_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/controller/graph"
)

// TestSameDecisionIsSaidInOtherWords changes one thing about an action at a time.
func TestSameDecisionIsSaidInOtherWords(t *testing.T) {
	yes, no := true, false
	action := func() graph.Action {
		alsoYes := true // another pointer to the same
		return graph.Action{
			Verb: graph.Release, Object: graph.Ref{Kind: podKind, Namespace: "x", Name: "p", UID: "p", ResourceVersion: "1"},
			Owners: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "o", UID: "o",
				BlockOwnerDeletion: &alsoYes}},
			Finalizers: []string{"f"}, Why: "because",
		}
	}
	for name, c := range map[string]struct {
		change func(*graph.Action)
		same   bool
	}{
		"nothing":                   {func(*graph.Action) {}, true},
		"the words":                 {func(a *graph.Action) { a.Why = "just so" }, true},
		"no finalizers, spelled":    {func(a *graph.Action) { a.Finalizers = []string{"f"} }, true},
		"lists of a claim":          {func(a *graph.Action) { a.Claim.Lists = 7 }, true},
		"the verb":                  {func(a *graph.Action) { a.Verb = graph.Unblock }, false},
		"the version":               {func(a *graph.Action) { a.Object.ResourceVersion = "2" }, false},
		"the claim":                 {func(a *graph.Action) { a.Claim.Name = "o" }, false},
		"the propagation":           {func(a *graph.Action) { a.Propagation = metav1.DeletePropagationOrphan }, false},
		"the finalizer":             {func(a *graph.Action) { a.Finalizer = "f" }, false},
		"the finalizers":            {func(a *graph.Action) { a.Finalizers = nil }, false},
		"a reference":               {func(a *graph.Action) { a.Owners = nil }, false},
		"a reference's owner":       {func(a *graph.Action) { a.Owners[0].UID = "oo" }, false},
		"a reference's version":     {func(a *graph.Action) { a.Owners[0].APIVersion = "v2" }, false},
		"unset for true":            {func(a *graph.Action) { a.Owners[0].BlockOwnerDeletion = nil }, false},
		"false for true":            {func(a *graph.Action) { a.Owners[0].BlockOwnerDeletion = &no }, false},
		"a controller":              {func(a *graph.Action) { a.Owners[0].Controller = &yes }, false},
		"why it cannot be resolved": {func(a *graph.Action) { a.Unresolvable = graph.Misplaced }, false},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := action(), action()
			c.change(&b)
			if a.Same(b) != c.same || b.Same(a) != c.same {
				t.Errorf("Same is %t, not %t", a.Same(b), c.same)
			}
		})
	}

	// What is not asked of anybody is the same whatever it is about.
	a, b := graph.Action{Verb: graph.Wait}, graph.Action{Verb: graph.Wait, Object: graph.Ref{Name: "p"}}
	if !a.Same(b) {
		t.Error("two ways of waiting are not the same")
	}
}

// TestConflictIsRepeatedOnlyIfTheDecisionStands: between a decision and the conflict that its
// request met, the watch has brought what the decision did not know. The graph then shows the
// object exactly as it is, and the decision is wrong all the same: a background DELETE would strip
// the orphan finalizer.
func TestConflictIsRepeatedOnlyIfTheDecisionStands(t *testing.T) {
	g := emptyGraph()
	object := graph.Object{Kind: podKind, UID: "p", Namespace: "x", Name: "p", ResourceVersion: "1",
		Owners: []metav1.OwnerReference{ownerRef('A', 0)}}
	see := func(o graph.Object) { g.Apply(graph.Observed{Object: &o}) }
	see(object)
	g.Apply(graph.Observed{Object: &graph.Object{Kind: mapKind, UID: "A0", Namespace: "x", Name: "A0",
		ResourceVersion: "1"}})
	g.Apply(graph.Gone{Kind: mapKind, UID: "A0"})
	a := g.Decide("p")
	if a.Verb != graph.Delete {
		t.Fatalf("decided to %s", a)
	}

	newer := object
	newer.ResourceVersion = "2"
	if !g.Still(a, &newer) {
		t.Error("a newer version of the same object is another matter")
	}
	see(newer)
	if !g.Still(a, &newer) {
		t.Error("a newer version of the same object, seen, is another matter")
	}
	changed := newer
	changed.Finalizers = []string{"example.com/f"}
	if g.Still(a, &changed) {
		t.Error("the object changed, and the decision stands")
	}
	ending := newer
	ending.ResourceVersion, ending.Deleting, ending.Finalizers = "3", true, []string{metav1.FinalizerOrphanDependents}
	see(ending)
	if g.Still(a, &ending) {
		t.Error("the object is orphaning, and its deletion in the background stands")
	}
	if !g.Shows(&ending) {
		t.Error("the graph does not show the object as it was seen")
	}
}
