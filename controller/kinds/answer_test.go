package kinds

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/weir-dev/weir/controller/graph"
)

// server answers discovery as the client hands it on.
type server struct {
	discovery.DiscoveryInterface
	groups []*metav1.APIGroup
	lists  []*metav1.APIResourceList
	err    error
}

func (s server) ServerGroupsAndResources() ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	return s.groups, s.lists, s.err
}

// TestAnAnswerOfWhichMuchIsMissing: kinds that are not in an answer are taken for gone, so an
// answer counts only if an API server may have given it, and what a group does not say about itself
// stays as it was.
func TestAnAnswerOfWhichMuchIsMissing(t *testing.T) {
	core := group("", "v1")
	namespaces := list("v1", metav1.APIResource{Name: "namespaces", Kind: "Namespace", Verbs: all})
	known := []graph.Resource{{Group: "down.io", Resource: "as", Kind: "A", Version: "v1", Versions: []string{"v1"},
		Collected: true}}
	failed := func(gvs ...schema.GroupVersion) error {
		err := &discovery.ErrGroupDiscoveryFailed{Groups: map[schema.GroupVersion]error{}}
		for _, gv := range gvs {
			err.Groups[gv] = errors.New("503")
		}
		return err
	}
	for name, c := range map[string]struct {
		server  server
		found   []string // nil: none of it counts
		unknown []string
		says    string
	}{
		"all of it": {server{groups: []*metav1.APIGroup{core}, lists: []*metav1.APIResourceList{namespaces}},
			[]string{"namespaces"}, nil, ""},
		"nothing": {server{err: errors.New("connection refused")}, nil, nil, "connection refused"},
		"empty":   {server{}, nil, nil, "the answer has no namespaces"},
		"without the core": {server{groups: []*metav1.APIGroup{group("apps", "v1")},
			lists: []*metav1.APIResourceList{list("apps/v1",
				metav1.APIResource{Name: "deployments", Kind: "Deployment", Verbs: all})}}, nil, nil,
			"the answer has no namespaces"},
		"the core failed": {server{err: failed(schema.GroupVersion{Version: "v1"})}, nil, nil,
			"the answer has no namespaces"},
		"a group that is known": {server{groups: []*metav1.APIGroup{core}, lists: []*metav1.APIResourceList{namespaces},
			err: failed(schema.GroupVersion{Group: "down.io", Version: "v1"})}, []string{"namespaces", "as.down.io"}, nil,
			"down.io/v1"},
		"a group that is not": {server{groups: []*metav1.APIGroup{core}, lists: []*metav1.APIResourceList{namespaces},
			err: failed(schema.GroupVersion{Group: "new.io", Version: "v1"},
				schema.GroupVersion{Group: "a.io", Version: "v2"})}, []string{"namespaces"}, []string{"a.io/v2", "new.io/v1"},
			"new.io/v1"},
		"no such version": {server{groups: []*metav1.APIGroup{core},
			lists: []*metav1.APIResourceList{namespaces, list("a/b/c", metav1.APIResource{Name: "xs", Kind: "X", Verbs: all})}},
			[]string{"namespaces"}, nil, ""},
	} {
		found, unknown, err := Discover(c.server, Ignored, known)
		var names []string
		for _, r := range found {
			names = append(names, r.GroupResource().String())
		}
		if !slices.Equal(names, c.found) || !slices.Equal(unknown, c.unknown) {
			t.Errorf("%s: found %q, unknown %q; want %q, %q", name, names, unknown, c.found, c.unknown)
		}
		if (err != nil) != (c.says != "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: error %v, want %q", name, err, c.says)
		}
	}
}

// TestKindsAreSorted: whatever the order of an answer, and of two versions of which neither can be
// collected the preferred one counts.
func TestKindsAreSorted(t *testing.T) {
	get := metav1.Verbs{"get"}
	groups := []*metav1.APIGroup{group("b.io", "v1", "v2"), group("a.io", "v1")}
	lists := []*metav1.APIResourceList{
		list("b.io/v2", metav1.APIResource{Name: "ys", Kind: "Y", Verbs: get},
			metav1.APIResource{Name: "xs", Kind: "X", Verbs: get}),
		list("b.io/v1", metav1.APIResource{Name: "xs", Kind: "X", Verbs: get}),
		list("a.io/v1", metav1.APIResource{Name: "zs", Kind: "Z", Verbs: get}),
	}
	want := []string{"a.io zs v1", "b.io xs v1", "b.io ys v2"}
	for range 2 {
		var got []string
		for _, r := range resourcesOf(groups, lists, nil) {
			got = append(got, r.Group+" "+r.Resource+" "+r.Version)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		slices.Reverse(lists)
	}
}
