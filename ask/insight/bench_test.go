package insight

import (
	"fmt"
	"hash/fnv"
	"io"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
)

// trees are n ConfigMaps in trees of two levels, below one root.
func trees(n int) (*World, types.UID) {
	gr := schema.GroupResource{Resource: "configmaps"}
	w := NewWorld("x", []graph.Resource{{Resource: "configmaps", Kind: "ConfigMap", Version: "v1", Versions: []string{"v1"}, Namespaced: true, Collected: true, Deletable: true, Listable: true}})
	objects := make([]metav1.PartialObjectMetadata, 0, n+1)
	add := func(name string, owner string) {
		m := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: name, UID: uidOf(name), ResourceVersion: "1"}}
		if owner != "" {
			m.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner, UID: uidOf(owner), BlockOwnerDeletion: new(true)}}
		}
		objects = append(objects, m)
	}
	add("root", "")
	for i := 0; i < n; {
		branch := fmt.Sprintf("branch-%d", i)
		add(branch, "root")
		for i++; i < n && i%100 != 0; i++ {
			add(fmt.Sprintf("leaf-%d", i), branch)
		}
	}
	w.List(gr, "1", objects)
	return w, uidOf("root")
}

// uidOf is a UUID, as the API server's are: of any other uid the graph keeps the text.
func uidOf(name string) types.UID {
	h := fnv.New128a()
	_, _ = h.Write([]byte(name)) // never fails
	b := h.Sum(nil)
	return types.UID(fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:]))
}

// BenchmarkPlan is the plan of an object with 100,000 dependents, and its drawing; reading them is
// not in it.
func BenchmarkPlan(b *testing.B) {
	for _, propagation := range []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground} {
		b.Run(string(propagation), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				w, root := trees(100_000)
				b.StartTimer()
				p := w.Plan(Deletion{Roots: []types.UID{root}, Propagation: propagation})
				if n := p.Totals().Deleted; n != 100_001 {
					b.Fatalf("%d objects are deleted", n)
				}
			}
		})
	}
	b.Run("drawing", func(b *testing.B) {
		w, root := trees(100_000)
		p := w.Plan(Deletion{Roots: []types.UID{root}, Propagation: metav1.DeletePropagationBackground})
		for b.Loop() {
			if err := p.Draw(io.Discard, Style{}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("tree", func(b *testing.B) {
		w, root := trees(100_000)
		for b.Loop() {
			if err := DrawTree(io.Discard, w.Tree(root, time.Time{}), Style{}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("world", func(b *testing.B) {
		for b.Loop() {
			trees(100_000)
		}
	})
}
