package kinds

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/weir-dev/weir/controller/graph"
)

var all = metav1.Verbs{"create", "delete", "get", "list", "patch", "update", "watch"}

func group(name string, versions ...string) *metav1.APIGroup {
	g := &metav1.APIGroup{Name: name}
	for _, v := range versions {
		g.Versions = append(g.Versions, metav1.GroupVersionForDiscovery{Version: v})
	}
	g.PreferredVersion = g.Versions[0]
	return g
}

func list(gv string, rs ...metav1.APIResource) *metav1.APIResourceList {
	return &metav1.APIResourceList{GroupVersion: gv, APIResources: rs}
}

func TestResourcesTakeTheBestVersionOfEachKind(t *testing.T) {
	tests := map[string]struct {
		reason string
		groups []*metav1.APIGroup
		lists  []*metav1.APIResourceList
		want   []graph.Resource
	}{
		"preferred": {
			reason: "the server's preferred version is watched; all versions resolve references",
			groups: []*metav1.APIGroup{group("apps", "v1", "v1beta1")},
			lists: []*metav1.APIResourceList{
				list("apps/v1beta1", metav1.APIResource{Name: "deployments", Kind: "Deployment", Namespaced: true, Verbs: all}),
				list("apps/v1", metav1.APIResource{Name: "deployments", Kind: "Deployment", Namespaced: true, Verbs: all}),
			},
			want: []graph.Resource{{Group: "apps", Resource: "deployments", Kind: "Deployment", Version: "v1",
				Versions: []string{"v1", "v1beta1"}, Namespaced: true, Collected: true, Deletable: true, Listable: true,
				Patchable: true}},
		},
		"other version can be watched": {
			reason: "RB 1.1: a kind whose preferred version cannot be watched is collected through another",
			groups: []*metav1.APIGroup{group("x.io", "v2", "v1")},
			lists: []*metav1.APIResourceList{
				list("x.io/v2", metav1.APIResource{Name: "xs", Kind: "X", Verbs: metav1.Verbs{"get"}}),
				list("x.io/v1", metav1.APIResource{Name: "xs", Kind: "X", Verbs: all}),
			},
			want: []graph.Resource{{Group: "x.io", Resource: "xs", Kind: "X", Version: "v1", Versions: []string{"v1", "v2"},
				Collected: true, Deletable: true, Listable: true, Patchable: true}},
		},
		"subresources and events": {
			reason: "subresources are no kinds; events are ignored in both groups, and still resolve (RB 1.2)",
			groups: []*metav1.APIGroup{group("", "v1"), group("events.k8s.io", "v1")},
			lists: []*metav1.APIResourceList{
				list("v1",
					metav1.APIResource{Name: "pods", Kind: "Pod", Namespaced: true, Verbs: all},
					metav1.APIResource{Name: "pods/status", Kind: "Pod", Namespaced: true, Verbs: all},
					metav1.APIResource{Name: "events", Kind: "Event", Namespaced: true, Verbs: all}),
				list("events.k8s.io/v1", metav1.APIResource{Name: "events", Kind: "Event", Namespaced: true, Verbs: all}),
			},
			want: []graph.Resource{
				{Resource: "events", Kind: "Event", Version: "v1", Versions: []string{"v1"}, Namespaced: true, Deletable: true,
					Listable: true, Patchable: true},
				{Resource: "pods", Kind: "Pod", Version: "v1", Versions: []string{"v1"}, Namespaced: true, Collected: true,
					Deletable: true, Listable: true, Patchable: true},
				{Group: "events.k8s.io", Resource: "events", Kind: "Event", Version: "v1", Versions: []string{"v1"},
					Namespaced: true, Deletable: true, Listable: true, Patchable: true},
			},
		},
		"not deletable": {
			reason: "a kind that cannot be deleted is looked up, never collected",
			groups: []*metav1.APIGroup{group("", "v1")},
			lists: []*metav1.APIResourceList{list("v1", metav1.APIResource{Name: "componentstatuses", Kind: "ComponentStatus",
				Verbs: metav1.Verbs{"get", "list"}})},
			want: []graph.Resource{{Resource: "componentstatuses", Kind: "ComponentStatus", Version: "v1",
				Versions: []string{"v1"}, Listable: true}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, resourcesOf(tc.groups, tc.lists, Ignored)); diff != "" {
				t.Errorf("%s\n(-want +got)\n%s", tc.reason, diff)
			}
		})
	}
}

// TestVersionInUseStaysWhileItsDiscoveryFails: the watch of a kind does not end, and nothing is
// listed again, because the version that it goes through does not answer for a while.
func TestVersionInUseStaysWhileItsDiscoveryFails(t *testing.T) {
	inUse := graph.Resource{Group: "x.io", Resource: "xs", Kind: "X", Version: "v2", Versions: []string{"v1", "v2"},
		Collected: true, Deletable: true, Listable: true}
	other := inUse
	other.Version, other.Versions = "v1", []string{"v1"}
	for name, tc := range map[string]struct {
		found graph.Resource
		fails string
		want  string
	}{
		"the version in use fails": {found: other, fails: "v2", want: "v2"},
		"another version fails": {found: graph.Resource{Group: "x.io", Resource: "xs", Kind: "X", Version: "v2",
			Versions: []string{"v2"}, Collected: true, Deletable: true, Listable: true}, fails: "v1", want: "v2"},
		// It did answer, and does not serve the kind any more.
		"the version in use is gone": {found: other, fails: "v3", want: "v1"},
	} {
		all, _ := keepFailed([]graph.Resource{tc.found}, []graph.Resource{inUse},
			sets.New(schema.GroupVersion{Group: "x.io", Version: tc.fails}))
		want := tc.found
		want.Version = tc.want
		if tc.fails != "v3" {
			want.Versions = []string{"v1", "v2"}
		}
		if diff := cmp.Diff([]graph.Resource{want}, all); diff != "" {
			t.Errorf("%s\n(-want +got)\n%s", name, diff)
		}
	}
}

func TestGroupsThatDoNotAnswerKeepWhatWasKnown(t *testing.T) {
	before := []graph.Resource{
		{Group: "down.io", Resource: "as", Kind: "A", Version: "v1", Versions: []string{"v1"}, Collected: true},
		{Group: "half.io", Resource: "bs", Kind: "B", Version: "v1", Versions: []string{"v1", "v2"}, Collected: true},
		{Group: "gone.io", Resource: "cs", Kind: "C", Version: "v1", Versions: []string{"v1"}, Collected: true},
	}
	found := []graph.Resource{{Group: "half.io", Resource: "bs", Kind: "B", Version: "v1", Versions: []string{"v1"},
		Collected: true}}
	failed := sets.New(schema.GroupVersion{Group: "down.io", Version: "v1"},
		schema.GroupVersion{Group: "half.io", Version: "v2"},
		schema.GroupVersion{Group: "new.io", Version: "v1"})
	want := []graph.Resource{
		{Group: "down.io", Resource: "as", Kind: "A", Version: "v1", Versions: []string{"v1"}, Collected: true},
		{Group: "half.io", Resource: "bs", Kind: "B", Version: "v1", Versions: []string{"v1", "v2"}, Collected: true},
	}
	all, unknown := keepFailed(found, before, failed)
	if diff := cmp.Diff(want, all); diff != "" {
		t.Errorf("a group that is down is kept, one that answered without its kind is not\n(-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{"new.io/v1"}, unknown); diff != "" {
		t.Errorf("a group that is down from the start is unknown\n(-want +got)\n%s", diff)
	}
}
