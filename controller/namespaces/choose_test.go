package namespaces

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/drain"
	"github.com/weir-dev/weir/controller/follow"
	"github.com/weir-dev/weir/controller/graph"
)

// TestContentIsChosenInPiecesAndNothingIsLeftOut while objects go: those that were chosen, and
// others that another client deletes.
func TestContentIsChosenInPiecesAndNothingIsLeftOut(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	const objects = mostChosen + mostChosen/2
	store := follow.NewStore()
	store.Apply(graph.Serving{Resources: []graph.Resource{{Resource: "pods", Kind: "Pod", Version: "v1", Versions: []string{"v1"}, Namespaced: true, Collected: true, Deletable: true, Listable: true}}})
	store.Apply(graph.ListBegins{Kind: pods}, graph.ListEnds{Kind: pods})
	object := func(i int) *graph.Object {
		return &graph.Object{Kind: pods, UID: types.UID(fmt.Sprintf("uid-%d", i)), Namespace: "shop", Name: fmt.Sprintf("p-%d", i), ResourceVersion: "1", Deleting: i%100 == 7}
	}
	for i := range objects {
		store.Apply(graph.Observed{Object: object(i)})
	}
	p := &pass{
		Drainer: &Drainer{Options: Options{Store: store}}, progress: &progress{}, ns: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}},
		state: drain.State{Kinds: []drain.Kind{{Kind: pods, Total: objects}}},
	}
	chosen := map[types.UID]bool{}
	others := map[types.UID]bool{} // that went before they were chosen
	pieces, next := 0, 0
	for refs := range p.choose(drain.Step{Kinds: []schema.GroupResource{pods}}) {
		pieces++
		if len(refs) > mostChosen {
			t.Fatalf("%d objects at a time, and %d are the most", len(refs), mostChosen)
		}
		for _, c := range refs {
			chosen[c.UID] = true
			store.Apply(graph.Gone{Kind: pods, UID: c.UID})
		}
		for ; next < 300*pieces; next++ { // the first that there were are the last to be chosen
			if uid := object(next).UID; !chosen[uid] {
				others[uid] = true
				store.Apply(graph.Gone{Kind: pods, UID: uid})
			}
		}
	}
	if pieces != 2 {
		t.Errorf("%d pieces of %d objects", pieces, objects)
	}
	if len(others) == 0 {
		t.Fatal("no other client deleted anything")
	}
	for i := range objects {
		o := object(i)
		switch {
		case o.Deleting && chosen[o.UID]:
			t.Fatalf("%s was chosen, and terminates already", o.Name)
		case !o.Deleting && !chosen[o.UID] && !others[o.UID]:
			t.Fatalf("%s was not chosen", o.Name)
		}
	}
}
