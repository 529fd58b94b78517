package graph_test

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/controller/graph"
)

// An owner goes, and its dependent is garbage: events go in, the objects whose decision may have
// changed come out, and each is asked about. Nothing is sent anywhere.
func Example() {
	g := graph.New()
	kind := schema.GroupResource{Resource: "configmaps"}
	g.Apply(graph.Serving{Resources: []graph.Resource{{
		Resource: "configmaps", Kind: "ConfigMap", Version: "v1", Versions: []string{"v1"}, Namespaced: true,
		Collected: true, Deletable: true, Listable: true,
	}}})
	g.Apply(graph.ListBegins{Kind: kind})
	g.Apply(graph.Observed{Object: &graph.Object{Kind: kind, Namespace: "shop", Name: "web", UID: "1",
		ResourceVersion: "7"}})
	g.Apply(graph.Observed{Object: &graph.Object{Kind: kind, Namespace: "shop", Name: "web-settings", UID: "2",
		ResourceVersion: "8",
		Owners:          []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "web", UID: "1"}}}})
	g.Apply(graph.ListEnds{Kind: kind})
	fmt.Println(g.Decide("2").Why)

	for _, uid := range g.Apply(graph.Gone{Kind: kind, UID: "1"}) {
		a := g.Decide(uid)
		fmt.Println(a.Verb, a.Object, "because", a.Why)
	}
	// Output:
	// owned by ConfigMap shop/web
	// delete configmaps shop/web-settings because owner is gone: ConfigMap shop/web
}
