package graph_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/internal/testkit/script"
)

func TestGraphIsComparedByUIDVersionAndContent(t *testing.T) {
	g := graph.New()
	g.Apply(graph.Serving{Resources: script.Usual()})
	object := func(change func(*graph.Object)) *graph.Object {
		o := &graph.Object{Kind: podKind, UID: "a", Namespace: "x", Name: "a", ResourceVersion: "10",
			Finalizers: []string{"f"},
			Owners:     []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "b", UID: "b"}}}
		change(o)
		return o
	}
	g.Apply(graph.Observed{Object: object(func(*graph.Object) {})})
	for name, c := range map[string]struct {
		live func(*graph.Object)
		want graph.Standing
	}{
		"the same":                      {func(*graph.Object) {}, graph.Level},
		"later":                         {func(o *graph.Object) { o.ResourceVersion = "11" }, graph.Different},
		"later, more digits":            {func(o *graph.Object) { o.ResourceVersion = "100" }, graph.Different},
		"earlier, fewer digits":         {func(o *graph.Object) { o.ResourceVersion, o.Owners = "9", nil }, graph.Level},
		"no order":                      {func(o *graph.Object) { o.ResourceVersion, o.Owners = "x", nil }, graph.Level},
		"same version, other owners":    {func(o *graph.Object) { o.Owners = nil }, graph.Different},
		"same version, other finalizer": {func(o *graph.Object) { o.Finalizers = []string{"g"} }, graph.Different},
		"same version, terminating":     {func(o *graph.Object) { o.Deleting = true }, graph.Different},
		"another uid":                   {func(o *graph.Object) { o.UID = "c" }, graph.Missing},
		"another kind":                  {func(o *graph.Object) { o.Kind = gizmoKind }, graph.Missing},
	} {
		if have := g.Compare(object(c.live)); have != c.want {
			t.Errorf("%s: %d, want %d", name, have, c.want)
		}
	}
}
