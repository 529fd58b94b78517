package follow

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/kinds"
	"github.com/weir-dev/weir/internal/testkit/apitest"
	"github.com/weir-dev/weir/policies"
)

// newOwner is a cluster with an owner and its dependent, which serves definitions, too. It is run
// by start, or startKinds.
func newOwner(t *testing.T) *watching {
	e := newWatching(t)
	e.serve(kinds.Definitions.String(), "CustomResourceDefinition v1")
	e.configMap("owner", ", uid: uid-owner")
	e.configMap("owned",
		", uid: uid-owned, ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: owner, uid: uid-owner}]")
	return e
}

// startKinds runs it with no more than the kinds followed until all is called, and returns when
// these are known.
func (e *watching) startKinds() (all func()) {
	e.Helper()
	ctx, cancel := context.WithCancel(e.Context())
	asked, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		e.watcher.RunKinds(ctx, asked)
	}()
	e.Cleanup(func() {
		cancel()
		<-done
	})
	e.until(5*time.Second, "the kinds are known", func() bool { return e.watcher.KindsReady() == nil })
	return func() { close(asked) }
}

// known is what policies are told of the objects that kindsOnly makes.
func known(f policies.Facts) map[string]any {
	type answer struct {
		What     any
		Complete bool
	}
	owner := policies.OwnerRef{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: "uid-owner"}
	every := func(schema.GroupResource) bool { return true }
	counted := func(a policies.AlsoDeleted, complete bool) answer { return answer{a.Total(), complete} }
	caught := f.Catch("uid-owner", func(schema.GroupResource) bool { return false }, every)
	digest, complete := f.Digest(policies.Search{UID: "uid-owner"})
	return map[string]any{
		"dependents": counted(f.Dependents(policies.Search{UID: "uid-owner"}, 100)),
		"instances":  counted(f.Instances(widgetKind)),
		"content":    counted(f.Content("shop")),
		"owner":      f.Owner(owner, "shop").Answer,
		"depends":    f.Depends("uid-owned", "uid-owner"),
		"caught":     answer{len(caught.Objects), caught.Complete},
		"going":      answer{digest, complete},
		"kind":       f.Kind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}).Served,
	}
}

// listed are the resources of which all objects were asked for, sorted.
func (e *watching) listed() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var all []string
	for name := range e.served {
		if resource, _, _ := strings.Cut(name, "."); e.lists[resource] > 0 {
			all = append(all, resource)
		}
	}
	slices.Sort(all)
	return all
}

func TestNoObjectsAreFollowedUntilTheyAreAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newOwner(t)
		all := e.startKinds()
		e.pass(time.Hour) // and no list is late
		if diff := cmp.Diff([]string{kinds.Definitions.Resource}, e.listed()); diff != "" {
			t.Errorf("listed (-want +got):\n%s", diff)
		}
		if e.watcher.Ready() == nil {
			t.Error("objects count as known which are not followed")
		}
		all()
		e.until(5*time.Second, "all is known", func() bool { return e.watcher.Ready() == nil })
		listed := []string{"configmaps", kinds.Definitions.Resource, "namespaces", "widgets"}
		if diff := cmp.Diff(listed, e.listed()); diff != "" || e.store.Stats().Objects != 3 {
			t.Errorf("%d objects are known, want 3; listed (-want +got):\n%s", e.store.Stats().Objects, diff)
		}
	})
}

// TestWhatIsNotFollowedIsAnsweredAsBeforeTheFirstList: no policy may take it for nothing, neither
// while it is not followed nor while it is listed after that.
func TestWhatIsNotFollowedIsAnsweredAsBeforeTheFirstList(t *testing.T) {
	unlisted := refusing("configmaps", apitest.Refuse(429, "TooManyRequests", "later"))
	var all []graph.Resource
	for _, r := range []graph.Resource{{Resource: "namespaces", Kind: "Namespace"},
		{Resource: "configmaps", Kind: "ConfigMap", Namespaced: true},
		{Group: kinds.Definitions.Group, Resource: kinds.Definitions.Resource, Kind: "CustomResourceDefinition"},
		{Group: "example.com", Resource: "widgets", Kind: "Widget", Namespaced: true}} {
		r.Version, r.Versions, r.Collected = "v1", []string{"v1"}, true
		all = append(all, r)
	}
	served := known(knowing(nil, graph.Serving{Resources: all}).Facts())
	var started, after map[string]any
	synctest.Test(t, func(t *testing.T) {
		e := newOwner(t)
		e.fail(unlisted)
		e.start()
		e.until(5*time.Second, "all else is listed", func() bool {
			return e.kind("widgets.example.com").State == graph.Synced
		})
		started = known(e.watcher.Facts())
	})
	synctest.Test(t, func(t *testing.T) {
		e := newOwner(t)
		all := e.startKinds()
		e.fail(unlisted)
		if diff := cmp.Diff(served, known(e.watcher.Facts())); diff != "" {
			t.Errorf("while they are not followed (-when no more was told than what is served +got):\n%s", diff)
		}
		all()
		e.until(5*time.Second, "all else is listed", func() bool {
			return e.kind("widgets.example.com").State == graph.Synced
		})
		after = known(e.watcher.Facts())
		e.fail(nil)
		e.until(5*time.Minute, "all is known", func() bool { return e.watcher.Ready() == nil })
		for what, answer := range known(e.watcher.Facts()) {
			if what != "kind" && cmp.Equal(served[what], answer) {
				t.Errorf("%s is not known at the end: %v", what, answer)
			}
		}
	})
	if diff := cmp.Diff(started, after); diff != "" {
		t.Errorf("while objects are listed (-at a start +after they were not followed):\n%s", diff)
	}
}

// TestNewKindIsKnownAtOnceWhereOnlyKindsAre by its definition, and not only when discovery is asked
// for the next time.
func TestNewKindIsKnownAtOnceWhereOnlyKindsAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newOwner(t)
		e.startKinds()
		gadget := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gadget"}
		e.pass(discoveryPeriod / 2)
		e.serve("gadgets.example.com", "Gadget v1")
		e.api.Put(kinds.Definitions.Resource,
			"{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: gadgets.example.com}}")
		e.until(5*time.Second, "the new kind is known", func() bool { return e.watcher.Facts().Kind(gadget).Served })
	})
}

// TestHistoryThatWentBackIsOverOnceAllIsFollowed: what was seen before is void, of the few kinds
// that were followed, too.
func TestHistoryThatWentBackIsOverOnceAllIsFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newOwner(t)
		all := e.startKinds()
		restore := e.api.Snapshot()
		e.configMap("late", ", uid: uid-late")
		e.pass(2 * time.Minute) // a bookmark comes
		e.api.Down()
		restore(0)
		e.api.Up()
		e.until(10*time.Second, "it is noticed", func() bool { return len(e.back()) > 0 })
		e.until(time.Minute, "the kinds are known again", func() bool { return e.watcher.KindsReady() == nil })
		if diff := cmp.Diff([]string{kinds.Definitions.Resource}, e.listed()); diff != "" {
			t.Errorf("listed (-want +got):\n%s", diff)
		}
		all()
		e.until(time.Minute, "all is known", func() bool { return e.watcher.Ready() == nil && e.store.Rewound() == "" })
		if _, there := e.store.Find(types.UID("uid-late")); there {
			t.Error("an object is known that was taken back")
		}
	})
}

// TestMetricsAreOfWhatIsFollowed: a kind that is not is not one whose list is late, of which an
// alert tells.
func TestMetricsAreOfWhatIsFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newOwner(t)
		registry := prometheus.NewRegistry()
		registry.MustRegister(NewGraphMetrics(e.store, e.watcher.Follows))
		states := func() map[string]float64 {
			families, err := registry.Gather()
			if err != nil {
				t.Fatal(err)
			}
			of := map[string]float64{}
			for _, f := range families {
				for _, m := range f.GetMetric() {
					if f.GetName() == "weir_graph_kinds" && m.GetGauge().GetValue() > 0 {
						of[m.GetLabel()[0].GetValue()] = m.GetGauge().GetValue()
					}
				}
			}
			return of
		}
		all := e.startKinds()
		if diff := cmp.Diff(map[string]float64{"synced": 1}, states()); diff != "" {
			t.Errorf("while only kinds are followed (-want +got):\n%s", diff)
		}
		all()
		e.until(5*time.Second, "all is known", func() bool { return e.watcher.Ready() == nil })
		if diff := cmp.Diff(map[string]float64{"synced": 4}, states()); diff != "" {
			t.Errorf("when all is (-want +got):\n%s", diff)
		}
	})
}
