package insight

import (
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
)

// kindsThatHold are cluster-scoped: the objects of the first two hold what is in them.
var kindsThatHold = []graph.Resource{
	{Group: definitions.Group, Resource: definitions.Resource, Kind: "CustomResourceDefinition", Version: "v1", Versions: []string{"v1"}, Collected: true, Deletable: true, Listable: true},
	{Resource: "namespaces", Kind: "Namespace", Version: "v1", Versions: []string{"v1"}, Collected: true, Deletable: true, Listable: true},
	{Group: "example.com", Resource: "roots", Kind: "Root", Version: "v1", Versions: []string{"v1"}, Collected: true, Deletable: true, Listable: true},
	{Group: "example.com", Resource: "tops", Kind: "Top", Version: "v1", Versions: []string{"v1"}, Collected: true, Deletable: true, Listable: true},
	secrets,
}

// holders is a cluster in which definitions and namespaces own, and are owned, as the API server
// lets them.
func holders(rng *rand.Rand) *World {
	type one struct {
		kind            graph.Resource
		namespace, name string
	}
	all := []one{{kindsThatHold[0], "", "roots.example.com"}, {kindsThatHold[0], "", "tops.example.com"}, {kindsThatHold[1], "", "x"}, {kindsThatHold[1], "", "y"}}
	for i := range 1 + rng.IntN(8) {
		all = append(all, one{pick(rng, kindsThatHold[2:]...), pick(rng, "x", "y"), fmt.Sprint("o", i)})
	}
	byKind := map[string][]metav1.PartialObjectMetadata{}
	for _, o := range all {
		var owners []metav1.OwnerReference
		for range rng.IntN(4) {
			owner := pick(rng, all...)
			r := reference(owner.kind, owner.name)
			if owner.kind.Group != "" {
				r.APIVersion = owner.kind.Group + "/v1"
			}
			r.BlockOwnerDeletion = pick(rng, nil, new(true), new(true))
			owners = append(owners, r)
		}
		m := object(o.kind, o.namespace, o.name, owners...)
		if o.kind.GroupResource() == definitions {
			m.Finalizers = append(m.Finalizers, cleanup)
		}
		if rng.IntN(4) > 0 {
			m.Finalizers = append(m.Finalizers, metav1.FinalizerDeleteDependents)
		}
		if rng.IntN(4) > 0 && (len(m.Finalizers) > 0 || o.kind.Resource == "namespaces") {
			m.DeletionTimestamp = &metav1.Time{Time: noon}
		}
		byKind[o.kind.Resource] = append(byKind[o.kind.Resource], m)
	}
	w := NewWorld("", kindsThatHold)
	for _, k := range kindsThatHold {
		w.List(k.GroupResource(), "1", byKind[k.Resource])
	}
	return w
}

// TestEveryQuestionHasAnAnswerWhateverOwnsWhat: no answer goes round in a circle (a definition may
// wait for its instance, which owns the definition), and what is being deleted is told of with
// somebody who has to act.
func TestEveryQuestionHasAnAnswerWhateverOwnsWhat(t *testing.T) {
	eachSeed(t, func(t *testing.T, rng *rand.Rand) {
		w := holders(rng)
		told := map[types.UID]bool{}
		for _, g := range w.Pending(noon) {
			for _, e := range g.Items {
				told[e.UID] = g.Actor != ""
			}
		}
		var all []graph.View
		for v := range w.objects() {
			all = append(all, *v)
		}
		for _, v := range all {
			if v.Deleting != told[v.UID] {
				t.Errorf("%s: it is being deleted: %t, and told of as waiting for somebody: %t", v.Name, v.Deleting, told[v.UID])
			}
			if a, ok := w.Why(v.UID, Facts{}, noon); !ok || len(a.Causes) == 0 {
				t.Errorf("why %s: no answer", v.Name)
			}
			if err := DrawTree(io.Discard, w.Tree(v.UID, noon), Style{}); err != nil {
				t.Error(err)
			}
			for _, p := range []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan} {
				if plan := w.Clone().Plan(Deletion{Roots: []types.UID{v.UID}, Propagation: p}); len(plan.Lines(Style{}, mostLines)) == 0 {
					t.Errorf("the plan of %s: no answer", v.Name)
				}
			}
		}
	})
}

// TestHoldersWaitForEachOther: without circles the test above would ask nothing.
func TestHoldersWaitForEachOther(t *testing.T) {
	circles := 0
	for seed := range uint64(50) {
		for _, g := range holders(rand.New(rand.NewPCG(seed, 0))).Pending(noon) {
			if g.Actor == whoBreaksACycle {
				circles++
			}
		}
	}
	if circles == 0 {
		t.Error("objects wait for each other in none of 50 clusters")
	}
}
