package insight

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/policies/v1beta1"
)

// TestOwnerThatMayHaveComeSinceIsNotGone: kinds are listed one after the other, and the cluster
// goes on.
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

// TestWhatAPolicyKeptIsTold: nothing owns it any more, and nobody would know why it is there.
func TestWhatAPolicyKeptIsTold(t *testing.T) {
	w := NewWorld("x", []graph.Resource{{Resource: "secrets", Kind: "Secret", Version: "v1", Versions: []string{"v1"}, Namespaced: true, Collected: true}})
	w.List(schema.GroupResource{Resource: "secrets"}, "1", []metav1.PartialObjectMetadata{
		{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: "kept", UID: "kept", Annotations: map[string]string{v1beta1.KeptAnnotation: "owner is gone"}}},
		{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: "free", UID: "free"}},
	})
	if all := w.Orphans(); len(all) != 1 || all[0].Name != "kept" || all[0].Fate != "protected" || all[0].Why != "owner is gone" {
		t.Errorf("%+v", all)
	}
	if a, _ := w.Why("kept", Facts{}, time.Time{}); a.Causes[0].What != "it was kept when its owners were deleted, and Weir removed its references to them: owner is gone" {
		t.Errorf("%+v", a.Causes)
	}
}

// TestPlanKeepsWhatAPolicyProtects: it is released from its owner, as the collector has to, and the
// rest goes.
func TestPlanKeepsWhatAPolicyProtects(t *testing.T) {
	w := NewWorld("x", []graph.Resource{{Resource: "secrets", Kind: "Secret", Version: "v1", Versions: []string{"v1"}, Namespaced: true, Collected: true}})
	owner := []metav1.OwnerReference{{APIVersion: "v1", Kind: "Secret", Name: "boss", UID: "boss"}}
	w.List(schema.GroupResource{Resource: "secrets"}, "1", []metav1.PartialObjectMetadata{
		{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: "boss", UID: "boss", ResourceVersion: "1"}},
		{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: "kept", UID: "kept", ResourceVersion: "1", OwnerReferences: owner}},
		{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: "gone", UID: "gone", ResourceVersion: "1", OwnerReferences: owner}},
	})
	p := w.Plan(Deletion{Roots: []types.UID{"boss"}, Propagation: metav1.DeletePropagationBackground, Protects: func(v graph.View) (why, doubt string) {
		return map[string]string{"boss": "nobody asks", "kept": "the policy's words"}[v.Name], map[string]string{"gone": "not read"}[v.Name]
	}})
	got := map[string]Outcome{}
	for _, i := range p.Items {
		got[i.Name] = i.Outcome
		if i.Name == "kept" && !strings.HasSuffix(i.Why, "kept, because a policy protects it: the policy's words") {
			t.Errorf("%s", i.Why)
		}
		if (i.Name == "gone") != (i.Doubt == "not read") {
			t.Errorf("%s: in doubt: %q", i.Name, i.Doubt)
		}
	}
	if want := map[string]Outcome{"boss": Deleted, "kept": Released, "gone": Deleted}; !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestOwnerInAnotherNamespaceIsTold: where that namespace was read, too.
func TestOwnerInAnotherNamespaceIsTold(t *testing.T) {
	kind := graph.Resource{Resource: "configmaps", Kind: "ConfigMap", Version: "v1", Versions: []string{"v1"}, Namespaced: true, Collected: true}
	object := func(namespace, name string, owners ...string) metav1.PartialObjectMetadata {
		m := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(name)}}
		for _, o := range owners {
			m.OwnerReferences = append(m.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: o, UID: types.UID(o)})
		}
		return m
	}
	w := NewWorld("", []graph.Resource{kind})
	w.List(kind.GroupResource(), "1", []metav1.PartialObjectMetadata{
		object("x", "owner"), object("x", "unrelated"), object("y", "here"),
		object("y", "stray", "owner"), object("y", "both", "here", "owner"), object("y", "never", "nobody"), object("y", "sound", "here"),
	})
	var told []string
	for _, o := range w.Orphans() {
		told = append(told, fmt.Sprint(o.Name, " ", o.Fate, " ", strings.Contains(o.Why, "; its owner ConfigMap owner is in the namespace x, where it does not count")))
	}
	if want := []string{"both release true", "never delete false", "stray delete true"}; !slices.Equal(told, want) {
		t.Errorf("orphans: %q, want %q", told, want)
	}
}

// TestAClusterScopedOwnerThatGoesReachesBeyondTheNamespace: only where something in it depends on
// that owner.
func TestAClusterScopedOwnerThatGoesReachesBeyondTheNamespace(t *testing.T) {
	for name, c := range map[string]struct {
		namespace string
		finalizer string // of the owner, which is being deleted
		owned     bool
		want      bool
	}{
		"it waits for what is in the namespace": {"x", metav1.FinalizerDeleteDependents, true, true},
		"it leaves what is in the namespace":    {"x", metav1.FinalizerOrphanDependents, true, true},
		"it waits for another component":        {"x", "example.com/hold", true, false},
		"nothing in the namespace is of it":     {"x", metav1.FinalizerDeleteDependents, false, false},
		"all of the cluster was read":           {"", metav1.FinalizerDeleteDependents, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			owner := object(nodes, "", "n")
			owner.DeletionTimestamp, owner.Finalizers = &metav1.Time{Time: noon}, []string{c.finalizer}
			part := object(configMaps, "x", "part")
			if c.owned {
				part.OwnerReferences = []metav1.OwnerReference{reference(nodes, "n")}
			}
			w := NewWorld(c.namespace, someKinds)
			w.List(nodes.GroupResource(), "1", []metav1.PartialObjectMetadata{owner})
			w.List(configMaps.GroupResource(), "1", []metav1.PartialObjectMetadata{part})
			if w.GoesBeyond() != c.want {
				t.Errorf("it goes beyond: %t, want %t", !c.want, c.want)
			}
			for _, g := range w.Pending(noon) {
				if told := g.Items[0].Waits; c.namespace != "" && c.finalizer != "example.com/hold" &&
					!strings.Contains(told, "still refers to it") && !strings.Contains(told, "could not be read: objects of other namespaces") {
					t.Errorf("what it waits for is known: %s", told)
				}
			}
		})
	}
}

// TestObjectsOfAKindAreListedAsTheyAreStored: by namespace and name, and only where it is known
// which there are.
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

// TestVersionsOfTwoStoragesAreNotCompared: of an API with a storage of its own it is the order of
// lists that says whether an owner is gone.
func TestVersionsOfTwoStoragesAreNotCompared(t *testing.T) {
	kind := func(group, resource, kind string) graph.Resource {
		return graph.Resource{Group: group, Resource: resource, Kind: kind, Version: "v1", Versions: []string{"v1"}, Namespaced: true, Collected: true}
	}
	maps, secrets, gadgets, gizmos := kind("", "configmaps", "ConfigMap"), kind("", "secrets", "Secret"), kind("gadgets.io", "gadgets", "Gadget"), kind("gadgets.io", "gizmos", "Gizmo")
	others := kind("others.io", "others", "Other")
	const again, apart = "the cluster changed while it was listed: ask again", "its API has versions of its own"
	for name, c := range map[string]struct {
		owner, dependent graph.Resource
		listed, written  string // when the owner's kind was listed, and the dependent written
		local            bool   // the groups are served by kube-apiserver
		says             string // empty: the owner is gone
	}{
		"of one storage, written before":               {maps, secrets, "100", "99", false, ""},
		"of one storage, written after":                {maps, secrets, "100", "101", false, again},
		"an aggregated owner, whose versions are less": {gadgets, secrets, "5", "101", false, apart},
		"an aggregated owner, whose versions are more": {gadgets, secrets, "1000", "101", false, apart},
		"an aggregated dependent":                      {secrets, gadgets, "100", "5", false, apart},
		"both of one aggregated API":                   {gadgets, gizmos, "5", "4", false, ""},
		"both of one aggregated API, written after":    {gadgets, gizmos, "5", "6", false, again},
		"of two aggregated APIs":                       {gadgets, others, "100", "5", false, apart},
		"a definition's group, written before":         {gadgets, secrets, "100", "99", true, ""},
		"a definition's group, written after":          {gadgets, secrets, "100", "101", true, again},
	} {
		t.Run(name, func(t *testing.T) {
			w := NewWorld("x", []graph.Resource{maps, secrets, gadgets, gizmos, others})
			for _, group := range []string{"gadgets.io", "others.io"} {
				m := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "v1." + group}}
				if c.local {
					m.Labels = map[string]string{"kube-aggregator.kubernetes.io/automanaged": "true"}
				}
				w.Served(&m)
			}
			of := metav1.OwnerReference{APIVersion: schema.GroupVersion{Group: c.owner.Group, Version: "v1"}.String(), Kind: c.owner.Kind, Name: "o", UID: "o"}
			w.List(c.owner.GroupResource(), c.listed, nil)
			w.List(c.dependent.GroupResource(), "2000", []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{
				Namespace: "x", Name: "d", UID: "d", ResourceVersion: c.written, OwnerReferences: []metav1.OwnerReference{of}}}})
			orphans := w.Clone().Orphans()
			if len(orphans) != 1 || (orphans[0].Fate == "delete") != (c.says == "") || !strings.Contains(orphans[0].Why, c.says) {
				t.Errorf("%+v, want %q", orphans, c.says)
			}
		})
	}
}

// TestAPIServicesTellWhatIsAggregated: those among the objects that were read.
func TestAPIServicesTellWhatIsAggregated(t *testing.T) {
	services := graph.Resource{Group: "apiregistration.k8s.io", Resource: "apiservices", Kind: "APIService", Version: "v1", Versions: []string{"v1"}, Collected: true}
	w := NewWorld("", []graph.Resource{services})
	of := func(name string, labels map[string]string) metav1.PartialObjectMetadata {
		return metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: labels}}
	}
	w.List(services.GroupResource(), "1", []metav1.PartialObjectMetadata{
		of("v1.", map[string]string{"kube-aggregator.kubernetes.io/automanaged": "onstart"}), of("v1.apps", map[string]string{"kube-aggregator.kubernetes.io/automanaged": "onstart"}),
		of("v1beta1.metrics.k8s.io", map[string]string{"k8s-app": "metrics-server"}), of("v1.gadgets.io", nil)})
	for group, want := range map[string]bool{"": false, "apps": false, "metrics.k8s.io": true, "gadgets.io": true, "io": false} {
		if got := w.aggregated[group]; got != want {
			t.Errorf("%q is aggregated: %t", group, got)
		}
	}
}
