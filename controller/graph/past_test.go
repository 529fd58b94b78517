package graph_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
)

func TestObjectThatCannotComeAfterWhatWasSeen(t *testing.T) {
	kind := schema.GroupResource{Resource: "configmaps"}
	object := func(uid, version string) *graph.Object {
		return &graph.Object{Kind: kind, UID: types.UID("uid-" + uid), Namespace: "shop", Name: uid, ResourceVersion: version}
	}
	g := graph.New()
	for _, ev := range []graph.Event{
		graph.Serving{Resources: []graph.Resource{
			{Resource: "configmaps", Kind: "ConfigMap", Version: "v1", Versions: []string{"v1"}, Namespaced: true,
				Collected: true},
			{Group: "liar.example.com", Resource: "views", Kind: "View", Version: "v1", Versions: []string{"v1"},
				Namespaced: true, Collected: true},
		}},
		graph.ListBegins{Kind: kind}, graph.ListEnds{Kind: kind},
		graph.Observed{Object: object("a", "10")}, graph.Observed{Object: object("b", "11")},
		graph.Gone{Kind: kind, UID: object("b", "").UID},
		// Another kind has the same uid.
		graph.Gone{Kind: schema.GroupResource{Group: "liar.example.com", Resource: "views"}, UID: object("a", "").UID},
	} {
		g.Apply(ev)
	}
	for name, c := range map[string]struct {
		object *graph.Object
		want   string
	}{
		"unchanged":                    {object("a", "10"), ""},
		"newer":                        {object("a", "12"), ""},
		"new":                          {object("c", "3"), ""},
		"version that is not a number": {object("a", "x"), ""},
		"older":                        {object("a", "8"), "shop/a has resourceVersion 8, and was seen at 10 before"},
		"seen to go": {object("b", "11"),
			"shop/b is there again after its deletion was seen, under the same uid"},
	} {
		if have := g.Contradicts(c.object); have != c.want {
			t.Errorf("%s: %q, want %q", name, have, c.want)
		}
	}
	g.Apply(graph.Rewound{})
	g.Apply(graph.Observed{Object: object("a", "8")})
	for _, name := range []string{"a", "b"} {
		if have := g.Contradicts(object(name, "8")); have != "" {
			t.Errorf("after the history went back, %s: %q", name, have)
		}
	}
}
