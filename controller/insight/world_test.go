package insight

import (
	"maps"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
)

// TestOwnerThatMayHaveComeSinceIsNotGone: kinds are listed one after the other, and the cluster goes on.
func TestOwnerThatMayHaveComeSinceIsNotGone(t *testing.T) {
	for name, c := range map[string]struct {
		listed, written string // when the owner's kind was listed, and the dependent written
		gone            bool
	}{
		"written before": {"100", "99", true},
		"written then":   {"100", "100", true},
		"written after":  {"100", "101", false},
		"nobody knows":   {"", "101", true},
	} {
		t.Run(name, func(t *testing.T) {
			kind := func(resource, kind string) graph.Resource {
				return graph.Resource{Resource: resource, Kind: kind, Version: "v1", Versions: []string{"v1"}, Namespaced: true, Collected: true}
			}
			w := NewWorld("x", []graph.Resource{kind("configmaps", "ConfigMap"), kind("secrets", "Secret")})
			w.List(schema.GroupResource{Resource: "configmaps"}, c.listed, nil)
			w.List(schema.GroupResource{Resource: "secrets"}, "200", []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{
				Namespace: "x", Name: "s", UID: "s", ResourceVersion: c.written,
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "o", UID: "o"}},
			}}})
			orphans := w.Orphans()
			if len(orphans) != 1 {
				t.Fatalf("%d orphans", len(orphans))
			}
			if (orphans[0].Fate == "delete") != c.gone || !c.gone && !strings.Contains(orphans[0].Why, "the cluster changed while it was listed: ask again") {
				t.Errorf("fate %q, %q; the owner is to be gone: %t", orphans[0].Fate, orphans[0].Why, c.gone)
			}
		})
	}
}

// TestOwnerInAnotherNamespaceIsTold: of a namespace that was read alone, too, once the other ones were looked at.
func TestOwnerInAnotherNamespaceIsTold(t *testing.T) {
	kind := graph.Resource{Resource: "configmaps", Kind: "ConfigMap", Version: "v1", Versions: []string{"v1"}, Namespaced: true, Collected: true}
	object := func(namespace, name string, owners ...string) metav1.PartialObjectMetadata {
		m := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(name)}}
		for _, o := range owners {
			m.OwnerReferences = append(m.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: o, UID: types.UID(o)})
		}
		return m
	}
	everything := []metav1.PartialObjectMetadata{
		object("x", "owner"), object("x", "unrelated"), object("y", "here"),
		object("y", "stray", "owner"), object("y", "both", "here", "owner"), object("y", "never", "nobody"), object("y", "sound", "here"),
	}
	for scope, of := range map[string][]metav1.PartialObjectMetadata{"": everything, "y": everything[2:]} {
		w := NewWorld(scope, []graph.Resource{kind})
		w.List(kind.GroupResource(), "1", slices.Clone(of))
		sought := w.Sought()
		if scope == "" {
			if sought != nil {
				t.Errorf("all of the cluster was read, and still is sought: %v", sought)
			}
		} else if len(sought) != 1 || sought[0].Kind.Resource != "configmaps" || !maps.Equal(sought[0].UIDs, map[types.UID]bool{"owner": true, "nobody": true}) {
			t.Errorf("is sought: %v", sought)
		}
		for _, s := range sought {
			w.Elsewhere(s, func(yield func(*metav1.PartialObjectMetadata) bool) {
				for i := range everything {
					if !yield(&everything[i]) {
						return
					}
				}
			})
		}
		var told []string
		for _, o := range w.Clone().Orphans() {
			told = append(told, o.Name+" "+o.Fate+" "+o.OwnerNamespace)
		}
		if want := []string{"both release x", "never delete ", "stray delete x"}; !slices.Equal(told, want) {
			t.Errorf("orphans of %q: %q, want %q", scope, told, want)
		}
		if sought := w.SoughtBy("sound"); len(sought) > 0 {
			t.Errorf("of an object whose owner is there, is sought: %v", sought)
		}
	}
}

// TestObjectsOfAKindAreListedAsTheyAreStored: by namespace and name, and only where it is known which there are.
func TestObjectsOfAKindAreListedAsTheyAreStored(t *testing.T) {
	kind := func(resource, kind string, namespaced bool) graph.Resource {
		return graph.Resource{Resource: resource, Kind: kind, Version: "v1", Versions: []string{"v1"}, Namespaced: namespaced, Collected: true}
	}
	maps, hosts := kind("configmaps", "ConfigMap", true), kind("nodes", "Node", false)
	of := func(namespace, name string) metav1.PartialObjectMetadata {
		return metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(namespace + name)}}
	}
	for name, c := range map[string]struct {
		scope     string // of the World; empty: all
		kind      string
		namespace string
		want      []string // nil: it is not known
	}{
		"a namespace":                    {"", "configmaps", "x", []string{"x/a", "x/b"}},
		"all":                            {"", "configmaps", "", []string{"x-y/c", "x/a", "x/b"}},
		"one in which there is nothing":  {"", "configmaps", "z", []string{}},
		"the namespace that was read":    {"x", "configmaps", "x", []string{"x/a", "x/b"}},
		"another one":                    {"x", "configmaps", "x-y", nil},
		"all, of which one was read":     {"x", "configmaps", "", nil},
		"what is in none":                {"x", "nodes", "", []string{"/a", "/b"}},
		"a kind that has not been read":  {"", "secrets", "x", nil},
		"a kind that is not served here": {"", "widgets", "", nil},
	} {
		w := NewWorld(c.scope, []graph.Resource{maps, hosts, kind("secrets", "Secret", true)})
		configs := []metav1.PartialObjectMetadata{of("x", "b"), of("x", "a")}
		if c.scope == "" {
			configs = append(configs, of("x-y", "c"))
		}
		w.List(maps.GroupResource(), "1", configs)
		w.List(hosts.GroupResource(), "1", []metav1.PartialObjectMetadata{of("", "b"), of("", "a")})
		objects, known := w.Listed(schema.GroupResource{Resource: c.kind}, c.namespace)
		var got []string
		for _, m := range objects {
			got = append(got, m.Namespace+"/"+m.Name)
		}
		if known != (c.want != nil) || !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, known: %t, want %q", name, got, known, c.want)
		}
	}
}
