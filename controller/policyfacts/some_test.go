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

// TestSomeIsBoundedHoweverManyDependentsThereAre: by the references that it looks at, since the graph reads no clock. BenchmarkSome tells what
// that takes.
func TestSomeIsBoundedHoweverManyDependentsThereAre(t *testing.T) {
	goes, all := manyDependents(3*mostOfSome).Some("uid-root", nothing)
	if all || goes.Total() == 0 || goes.Total() > mostOfSome {
		t.Errorf("%d objects, all of them: %v; want %d at most, and not all", goes.Total(), all, mostOfSome)
	}
}

// BenchmarkSome is the summary of a delete that is only tried, or refused, of an object with 200,000 dependents: the goal is 5 ms.
func BenchmarkSome(b *testing.B) {
	facts := manyDependents(200_000)
	for b.Loop() {
		if _, all := facts.Some("uid-root", nothing); all {
			b.Fatal("all of it was looked at")
		}
	}
}
