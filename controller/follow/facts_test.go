package follow

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/internal/testkit/fixture"
	"github.com/weir-dev/weir/policies"
)

var (
	namespaced = []graph.Resource{
		{Resource: "pods", Kind: "Pod", Version: "v1", Versions: []string{"v1"}, Namespaced: true, Collected: true},
		{Group: "apps", Resource: "deployments", Kind: "Deployment", Version: "v1", Versions: []string{"v1"},
			Namespaced: true, Collected: true},
		{Group: "apps", Resource: "replicasets", Kind: "ReplicaSet", Version: "v1", Versions: []string{"v1"},
			Namespaced: true, Collected: true},
	}
)

// knowing is a controller that has seen events, and heard nothing from some group versions.
func knowing(unknown []string, events ...graph.Event) *Watcher {
	c := &Watcher{store: NewStore(), unknown: unknown}
	c.store.Apply(events...)
	return c
}

// shop is a Deployment with its ReplicaSet and two Pods.
func shop() []graph.Event {
	events := []graph.Event{graph.Serving{Resources: namespaced}}
	for _, r := range namespaced {
		events = append(events, graph.ListBegins{Kind: r.GroupResource()}, graph.ListEnds{Kind: r.GroupResource()})
	}
	object := func(kind schema.GroupResource, name string, owners ...metav1.OwnerReference) graph.Event {
		return graph.Observed{Object: &graph.Object{Kind: kind, UID: types.UID("uid-" + name), Namespace: "shop", Name: name,
			ResourceVersion: "1", Owners: owners}}
	}
	return append(events,
		object(fixture.Deployments, "web"),
		object(fixture.ReplicaSets, "web-1", owner("apps/v1", "Deployment", "web")),
		object(fixture.Pods, "b", owner("apps/v1", "ReplicaSet", "web-1")),
		object(fixture.Pods, "a", owner("apps/v1", "ReplicaSet", "web-1")),
	)
}

func owner(apiVersion, kind, name string) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: name, UID: types.UID("uid-" + name)}
}

func TestFactsCountWhatWouldBeDeleted(t *testing.T) {
	f := knowing(nil, shop()...).Facts()
	twoPods := policies.KindCount{Resource: "pods", Count: 2, Names: []string{"a", "b"}}
	replicaSet := policies.KindCount{Resource: "replicasets.apps", Count: 1, Names: []string{"web-1"}}
	type answer struct {
		AlsoDeleted policies.AlsoDeleted
		OK          bool
	}
	of := func(also policies.AlsoDeleted, ok bool) answer { return answer{also, ok} }
	tests := map[string]struct{ got, want answer }{
		"with an object": {of(f.Dependents(policies.Search{UID: "uid-web", Kept: func(schema.GroupResource) bool {
			return false
		}}, 100)), answer{policies.AlsoDeleted{Kinds: []policies.KindCount{twoPods, replicaSet}}, true}},
		"with an object, but for a kind": {of(f.Dependents(policies.Search{UID: "uid-web-1",
			Kept: func(gr schema.GroupResource) bool {
				return gr == fixture.Pods
			}}, 100)), answer{policies.AlsoDeleted{}, true}},
		"but for a kind further down": {of(f.Dependents(policies.Search{UID: "uid-web",
			Kept: func(gr schema.GroupResource) bool {
				return gr == fixture.Pods
			}}, 100)), answer{policies.AlsoDeleted{Kinds: []policies.KindCount{twoPods, replicaSet}}, true}},
		"with what has no dependents": {of(f.Dependents(policies.Search{UID: "uid-a"}, 100)),
			answer{policies.AlsoDeleted{}, true}},
		"with what was never seen": {of(f.Dependents(policies.Search{UID: "uid-x"}, 100)), answer{}},
		"of a kind": {of(f.Instances(fixture.ReplicaSets)),
			answer{policies.AlsoDeleted{Kinds: []policies.KindCount{{Resource: "replicasets.apps", Count: 1,
				Names: []string{"shop/web-1"}}}}, true}},
		"of a kind that is not served": {of(f.Instances(schema.GroupResource{Group: "x.io", Resource: "xs"})),
			answer{policies.AlsoDeleted{}, true}},
		"with a namespace": {of(f.Content("shop")),
			answer{policies.AlsoDeleted{Kinds: []policies.KindCount{{Resource: "deployments.apps", Count: 1,
				Names: []string{"web"}}, twoPods, replicaSet}}, true}},
		"with an empty namespace": {of(f.Content("other")), answer{policies.AlsoDeleted{}, true}},
	}
	for name, tc := range tests {
		if diff := cmp.Diff(tc.want, tc.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestFactsFindWhatWouldBeDeleted(t *testing.T) {
	f := knowing(nil, shop()...).Facts()
	only := func(kinds ...schema.GroupResource) func(schema.GroupResource) bool {
		return func(gr schema.GroupResource) bool { return slices.Contains(kinds, gr) }
	}
	caught := func(gr schema.GroupResource, kind, name string) policies.Caught {
		return policies.Caught{Resource: gr.WithVersion("v1"),
			Kind: schema.GroupVersionKind{Group: gr.Group, Version: "v1", Kind: kind}, Namespace: "shop", Name: name,
			UID: types.UID("uid-" + name)}
	}
	a, b, web1 := caught(fixture.Pods, "Pod", "a"), caught(fixture.Pods, "Pod", "b"),
		caught(fixture.ReplicaSets, "ReplicaSet", "web-1")
	none := only()
	for name, c := range map[string]struct {
		uid          types.UID
		kept, wanted func(schema.GroupResource) bool
		want         []policies.Caught
	}{
		"with an object": {"uid-web", none, only(fixture.Pods, fixture.ReplicaSets),
			[]policies.Caught{a, b, web1}},
		"with an object, but for a kind": {"uid-web", only(fixture.ReplicaSets), only(fixture.Pods, fixture.ReplicaSets),
			nil},
		"of one kind":              {"uid-web", none, only(fixture.Pods), []policies.Caught{a, b}},
		"with what was never seen": {"uid-x", none, only(fixture.Pods), nil},
	} {
		if diff := cmp.Diff(policies.Catch{Objects: c.want, Complete: true}, f.Catch(c.uid, c.kept, c.wanted)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	both := only(fixture.Pods, fixture.ReplicaSets)
	for name, c := range map[string]struct {
		search policies.Search
		want   []schema.GroupVersionKind
	}{
		"a namespace":         {policies.Search{Namespace: "shop"}, []schema.GroupVersionKind{a.Kind, web1.Kind}},
		"another":             {policies.Search{Namespace: "nowhere"}, nil},
		"a definition":        {policies.Search{Instances: fixture.ReplicaSets}, []schema.GroupVersionKind{web1.Kind}},
		"one without objects": {policies.Search{Instances: fixture.Gadgets}, nil},
	} {
		kinds, complete := f.Holds(c.search, both)
		var got []schema.GroupVersionKind
		for _, k := range kinds {
			got = append(got, k.Kind)
		}
		if diff := cmp.Diff(c.want, got); diff != "" || !complete {
			t.Errorf("%s holds (-want +got), all of it %t:\n%s", name, complete, diff)
		}
	}
	silent := knowing([]string{"x.io/v1"}, shop()...).Facts()
	xs := policies.Search{Instances: schema.GroupResource{Group: "x.io", Resource: "xs"}}
	if _, complete := silent.Holds(xs, both); complete {
		t.Error("the objects of a group that never answered are known")
	}
	early := knowing(nil, graph.Serving{Resources: namespaced}).Facts()
	if c := early.Catch("uid-web", none, only(fixture.Pods)); c.Complete {
		t.Error("what would also be deleted is known before the lists")
	}
	if _, complete := early.Holds(policies.Search{Namespace: "shop"}, both); complete {
		t.Error("what a namespace holds is known before the lists")
	}
}

func TestFactsSayNothingBeforeTheyAreKnown(t *testing.T) {
	listing := []graph.Event{graph.Serving{Resources: namespaced}}
	for name, c := range map[string]*Watcher{"before discovery": knowing(nil),
		"before the lists": knowing(nil, listing...)} {
		f := c.Facts()
		if _, ok := f.Dependents(policies.Search{UID: "uid-web"}, 100); ok {
			t.Errorf("%s: what would be deleted with an object is known", name)
		}
		if _, ok := f.Instances(fixture.Pods); ok {
			t.Errorf("%s: the number of pods is known", name)
		}
		if _, ok := f.Content("shop"); ok {
			t.Errorf("%s: the content of a namespace is known", name)
		}
		if o := f.Owner(policies.OwnerRef{APIVersion: "v1", Kind: "Pod", Name: "a", UID: "uid-a"},
			"shop"); o != (policies.Owner{}) {
			t.Errorf("%s: an owner is known: %+v", name, o)
		}
	}
	if k := knowing(nil).Facts().Kind(schema.GroupVersionKind{Version: "v1", Kind: "Pod"}); k.Known {
		t.Errorf("before discovery: a kind is known: %+v", k)
	}
}

// TestFactsAboutSilentGroups: what never answered may serve anything.
func TestFactsAboutSilentGroups(t *testing.T) {
	f := knowing([]string{"x.io/v1"}, shop()...).Facts()
	if _, ok := f.Instances(schema.GroupResource{Group: "x.io", Resource: "xs"}); ok {
		t.Error("the number of objects of a group that never answered is known")
	}
	if _, ok := f.Instances(schema.GroupResource{Group: "y.io", Resource: "ys"}); !ok {
		t.Error("one silent group hides another")
	}
	for _, tc := range []struct {
		gvk  schema.GroupVersionKind
		want policies.Kind
	}{
		{schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"},
			policies.Kind{Known: true, Served: true, Namespaced: true, Resources: []schema.GroupResource{fixture.Deployments}}},
		{schema.GroupVersionKind{Group: "apps", Version: "v1beta1", Kind: "Deployment"}, policies.Kind{Known: true}},
		{schema.GroupVersionKind{Group: "x.io", Version: "v1", Kind: "X"}, policies.Kind{}},
		{schema.GroupVersionKind{Group: "y.io", Version: "v1", Kind: "Y"}, policies.Kind{Known: true}},
	} {
		if diff := cmp.Diff(tc.want, f.Kind(tc.gvk)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.gvk, diff)
		}
	}
}

func TestFactsAboutOwners(t *testing.T) {
	c := knowing(nil, append(shop(), graph.Gone{Kind: fixture.Pods, UID: "uid-b"})...)
	f := c.Facts()
	ref := func(name string) policies.OwnerRef {
		return policies.OwnerRef{APIVersion: "v1", Kind: "Pod", Name: name, UID: types.UID("uid-" + name)}
	}
	for name, want := range map[string]policies.Owner{
		"a": {Answer: policies.Present, Kind: schema.GroupKind{Kind: "Pod"}, Namespace: "shop", Name: "a"},
		"web": {Answer: policies.Present, Kind: schema.GroupKind{Group: "apps", Kind: "Deployment"}, Namespace: "shop",
			Name: "web"},
		"b": {Answer: policies.Absent},
		"c": {},
	} {
		if diff := cmp.Diff(want, f.Owner(ref(name), "other")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	// A list that does not show an object is no proof: it may have been read before the object was
	// made.
	c.store.Apply(graph.ListBegins{Kind: fixture.Pods}, graph.ListEnds{Kind: fixture.Pods})
	if o := f.Owner(ref("a"), "shop"); o != (policies.Owner{}) {
		t.Errorf("an owner that a list does not show: %+v", o)
	}
	if !f.Depends("uid-web-1", "uid-web") || f.Depends("uid-web", "uid-web-1") {
		t.Error("a ReplicaSet depends on its Deployment, and not the other way round")
	}
}
