package policyfacts

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/policies"
)

// manyDependents are the facts of a graph in which uid-root has n dependents.
func manyDependents(n int) policies.Facts {
	kind := schema.GroupResource{Resource: "configmaps"}
	g := graph.New()
	g.Apply(graph.Serving{Resources: []graph.Resource{{Resource: "configmaps", Kind: "ConfigMap", Version: "v1", Versions: []string{"v1"}, Namespaced: true, Collected: true, Deletable: true, Listable: true}}})
	g.Apply(graph.ListBegins{Kind: kind})
	see := func(name string, owners ...metav1.OwnerReference) {
		g.Apply(graph.Observed{Object: graph.ObjectOf(kind, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Namespace: "x", Name: name, UID: types.UID("uid-" + name), ResourceVersion: "1", OwnerReferences: owners}})})
	}
	see("root")
	for i := range n {
		see(fmt.Sprintf("leaf-%d", i), metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "root", UID: "uid-root"})
	}
	g.Apply(graph.ListEnds{Kind: kind})
	return Of(func(f func(*graph.Graph)) { f(g) })
}

func nothing(schema.GroupResource) bool { return false }

// TestCountsAreBoundedHoweverManyDependentsThereAre: by the references that they look at, since the
// graph reads no clock. BenchmarkCount tells what that takes.
func TestCountsAreBoundedHoweverManyDependentsThereAre(t *testing.T) {
	const n = 3 * mostOfSome
	for accepted, all := range map[int]bool{0: false, n: true} {
		also, known := manyDependents(n).Dependents(policies.Search{UID: "uid-root", Kept: nothing}, accepted)
		if known != all || also.Cut == all || also.Total() != map[bool]int{true: n, false: mostOfSome}[all] {
			t.Errorf("%d are accepted: %d objects, known: %t, cut: %t", accepted, also.Total(), known, also.Cut)
		}
	}
}

// TestDigestOfMoreThanAreLookedAtIsNotKnown, however they are confirmed.
func TestDigestOfMoreThanAreLookedAtIsNotKnown(t *testing.T) {
	for n, all := range map[int]bool{policies.MostConfirmed - 1: true, policies.MostConfirmed: false} {
		if _, known := manyDependents(n).Digest(policies.Search{UID: "uid-root", Kept: nothing}); known != all {
			t.Errorf("%d objects: known: %t", n, known)
		}
	}
}

// BenchmarkDigest is the digest of as many as one is made of: some 30 ms of which are under the
// lock.
func BenchmarkDigest(b *testing.B) {
	facts := manyDependents(policies.MostConfirmed - 1)
	for b.Loop() {
		if _, all := facts.Digest(policies.Search{UID: "uid-root", Kept: nothing}); !all {
			b.Fatal("not all of it was looked at")
		}
	}
}

// BenchmarkCount is what would also be deleted with an object with 200,000 dependents, where none
// is accepted: the goal is a millisecond.
func BenchmarkCount(b *testing.B) {
	facts := manyDependents(200_000)
	for b.Loop() {
		if _, all := facts.Dependents(policies.Search{UID: "uid-root", Kept: nothing}, 0); all {
			b.Fatal("all of it was looked at")
		}
	}
}
