package undo

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/weir-dev/weir/archive/restore"
	"github.com/weir-dev/weir/internal/testkit/apitest"
)

// shop is a tree that was deleted: a namespace, owners of owners, and a cycle.
const shop = `
namespaces: {metadata: {name: shop, uid: ns}}
configmaps: {metadata: {name: boss, namespace: shop, uid: boss, managedFields: [{manager: helm, operation: Apply}]}}
configmaps: {metadata: {name: leaf, namespace: shop, uid: leaf, ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: boss, uid: boss}]}}
secrets: {metadata: {name: twig, namespace: shop, uid: twig, ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: leaf, uid: leaf}, {apiVersion: v1, kind: ConfigMap, name: gone, uid: gone}]}}
configmaps: {metadata: {name: day, namespace: shop, uid: day, ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: night, uid: night}]}}
configmaps: {metadata: {name: night, namespace: shop, uid: night, ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: day, uid: day}]}}
services: {metadata: {name: web, namespace: shop, uid: web}, spec: {clusterIP: 10.0.0.1, ports: [{port: 80, nodePort: 30000}]}}
`

var kindNames = map[string]string{"namespaces": "Namespace", "configmaps": "ConfigMap", "secrets": "Secret", "services": "Service"}

func records(t tester, lines string) (list []restore.Record) {
	for line := range strings.SplitSeq(strings.TrimSpace(lines), "\n") {
		resource, text, _ := strings.Cut(line, ":")
		o := &unstructured.Unstructured{Object: map[string]any{}}
		if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
			t.Fatal(err)
		}
		o.SetAPIVersion("v1")
		o.SetKind(kindNames[resource])
		list = append(list, restore.Record{Resource: schema.GroupVersionResource{Version: "v1", Resource: resource}, Object: o})
	}
	return list
}

// serving is discovery of the kinds of the tree.
type serving struct{ discovery.DiscoveryInterface }

func (serving) ServerGroupsAndResources() ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	l := &metav1.APIResourceList{GroupVersion: "v1"}
	for name, kind := range kindNames {
		l.APIResources = append(l.APIResources, metav1.APIResource{Name: name, Kind: kind, Namespaced: kind != "Namespace",
			Verbs: metav1.Verbs{"get", "list", "watch", "create", "delete", "patch"}})
	}
	return []*metav1.APIGroup{{Versions: []metav1.GroupVersionForDiscovery{{GroupVersion: "v1", Version: "v1"}},
		PreferredVersion: metav1.GroupVersionForDiscovery{GroupVersion: "v1", Version: "v1"}}}, []*metav1.APIResourceList{l}, nil
}

// tester is a test, or a case of rapid.
type tester interface {
	rapid.TB
	Context() context.Context
}

// restored restores a tree, and returns what failed.
func restored(t tester, tree []restore.Record, config *rest.Config) (failed []string, plan *restore.Plan) {
	t.Helper()
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	w, err := Read(t.Context(), client, serving{}, "tree", tree)
	if err != nil {
		t.Fatal(err)
	}
	plan = restore.Make(w, restore.Options{})
	Refuse(t.Context(), client, plan)
	Do(t.Context(), client, plan, func(d Done) {
		if d.Err != nil {
			failed = append(failed, fmt.Sprintf("%s: %v", d.Step.Ref, d.Err))
		}
	})
	return failed, plan
}

// state is what there is, with names in the place of uids; a uid that nothing has is itself.
func state(t tester, tree []restore.Record, api *apitest.Server) map[string][]string {
	t.Helper()
	names := map[string]string{}
	out := map[string][]string{}
	var all []*unstructured.Unstructured
	for _, r := range tree {
		key := r.Resource.Resource + "/" + r.Object.GetNamespace() + "/" + r.Object.GetName()
		if o := api.Get(strings.Replace(key, "//", "/", 1)); o != nil {
			all = append(all, &unstructured.Unstructured{Object: o})
			names[string(all[len(all)-1].GetUID())] = r.Object.GetName()
		}
	}
	for _, o := range all {
		owners := []string{}
		for _, ref := range o.GetOwnerReferences() {
			name := names[string(ref.UID)]
			if name == "" {
				t.Errorf("%s refers to uid %s, which nothing has", o.GetName(), ref.UID)
			}
			owners = append(owners, name)
		}
		slices.Sort(owners)
		out[o.GetKind()+" "+o.GetName()] = append(owners, o.GetAnnotations()["weir.dev/restored"])
		for _, m := range o.GetManagedFields() {
			out[o.GetKind()+" "+o.GetName()] = append(out[o.GetKind()+" "+o.GetName()], "applied by "+m.Manager)
		}
	}
	return out
}

var whole = map[string][]string{
	"Namespace shop": {"tree/ns"}, "ConfigMap boss": {"tree/boss", "applied by helm"}, "ConfigMap leaf": {"boss", "tree/leaf"}, "Secret twig": {"leaf", "tree/twig"},
	"ConfigMap day": {"night", "tree/day"}, "ConfigMap night": {"day", "tree/night"}, "Service web": {"tree/web"},
}

// TestKilledAtAnyRequestItGoesOn: whatever is the last request, and whether its answer came, the
// next restore does the rest, nothing twice, and nothing ever refers to a uid that nothing has.
func TestKilledAtAnyRequestItGoesOn(t *testing.T) {
	kills, tree := 0, records(t, shop)
	for _, answered := range []bool{false, true} {
		for k := 0; killed(t, tree, whole, k, answered); k++ {
			kills++
		}
	}
	t.Logf("%d kills", kills)
}

// TestKilledAnywhereInRandomTreesItGoesOn: the same of trees with any owners, which may be gone, and
// with cycles.
func TestKilledAnywhereInRandomTreesItGoesOn(t *testing.T) {
	kills := 0
	rapid.Check(t, func(t *rapid.T) {
		lines := "namespaces: {metadata: {name: shop, uid: ns}}\n"
		n := rapid.IntRange(1, 7).Draw(t, "objects")
		for i := range n {
			var owners []string
			for range rapid.IntRange(0, 2).Draw(t, "owners") {
				owners = append(owners, fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, name: o%[1]d, uid: o%[1]d}", rapid.IntRange(0, n).Draw(t, "owner")))
			}
			lines += fmt.Sprintf("configmaps: {metadata: {name: o%[1]d, namespace: shop, uid: o%[1]d, ownerReferences: [%[2]s]}}\n", i, strings.Join(owners, ", "))
		}
		tree, api := records(t, lines), apitest.New()
		if failed, _ := restored(t, tree, api.Config()); len(failed) > 0 {
			t.Fatalf("it fails: %q", failed)
		}
		if killed(t, tree, state(t, tree, api), rapid.IntRange(0, 4*n).Draw(t, "killed after"), rapid.Bool().Draw(t, "answered")) {
			kills++
		}
	})
	t.Logf("%d kills", kills)
}

// killed restores a tree with a client that is killed, and then again, as it is wanted. It tells
// whether there were so many requests.
func killed(t tester, tree []restore.Record, want map[string][]string, k int, answered bool) bool {
	t.Helper()
	api := apitest.New()
	client := api.Dying(k, answered)
	restored(t, tree, client.Config())
	state(t, tree, api)
	if failed, _ := restored(t, tree, api.Config()); len(failed) > 0 {
		t.Fatalf("killed at request %d: the next one fails: %q", k, failed)
	}
	if diff := cmp.Diff(want, state(t, tree, api)); diff != "" {
		t.Fatalf("killed at request %d (-want +got):\n%s", k, diff)
	}
	if _, plan := restored(t, tree, api.Config()); len(plan.Acting()) > 0 {
		t.Fatalf("killed at request %d: something is left after all was done", k)
	}
	return !client.Alive()
}

// TestTwoRestoresAtOnceAreOne: each makes what the other has not, and both succeed.
func TestTwoRestoresAtOnceAreOne(t *testing.T) {
	api, tree := apitest.New(), records(t, shop)
	var inner []string
	begun := false
	// The other one runs from its beginning to its end between the plan of the first and its steps.
	api.Intercept(func(r apitest.Request) *apitest.Reply {
		if r.Method == http.MethodPost && !strings.Contains(r.Path, "selfsubject") && !begun {
			begun = true
			inner, _ = restored(t, tree, api.Config())
		}
		return nil
	})
	failed, _ := restored(t, tree, api.Config())
	if len(failed)+len(inner) > 0 {
		t.Errorf("they fail: %q and %q", failed, inner)
	}
	if diff := cmp.Diff(whole, state(t, tree, api)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestWhatFailsHoldsUpWhatNeedsIt: and nothing else.
func TestWhatFailsHoldsUpWhatNeedsIt(t *testing.T) {
	var api *apitest.Server
	faster := func(object string) func(apitest.Request) *apitest.Reply { // somebody makes it before it is made
		return func(r apitest.Request) *apitest.Reply {
			if r.Method == http.MethodPost && strings.Contains(r.Body, `"name":"leaf"`) && api.Get("configmaps/shop/leaf") == nil {
				api.Put("configmaps", object)
			}
			return nil
		}
	}
	for name, c := range map[string]struct {
		refuse func(apitest.Request) *apitest.Reply
		failed []string
		there  []string
	}{
		"an owner that is refused": {func(r apitest.Request) *apitest.Reply {
			if r.Method == http.MethodPost && strings.Contains(r.Body, `"name":"leaf"`) {
				return apitest.Refuse(403, "Forbidden", "a policy")
			}
			return nil
		}, []string{"configmaps/shop/leaf: a policy", "secrets/shop/twig: its owner configmaps/shop/leaf was not made"}, []string{"ConfigMap boss", "ConfigMap night"}},
		"a kind that the user may not create": {func(r apitest.Request) *apitest.Reply {
			if strings.Contains(r.Path, "selfsubject") {
				allowed := !strings.Contains(r.Body, `"resource":"secrets"`)
				return &apitest.Reply{Code: 201, Body: map[string]any{"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "status": map[string]any{"allowed": allowed}}}
			}
			if r.Method == http.MethodPost && strings.HasSuffix(r.Path, "/secrets") {
				t.Error("it was tried")
			}
			return nil
		}, []string{"secrets/shop/twig: you may not create it"}, []string{"ConfigMap leaf"}},
		"the namespace": {func(r apitest.Request) *apitest.Reply {
			if r.Method == http.MethodPost && strings.HasSuffix(r.Path, "/namespaces") {
				return apitest.Refuse(403, "Forbidden", "a policy")
			}
			return nil
		}, []string{"namespaces/shop: a policy", "secrets/shop/twig: its owner configmaps/shop/leaf was not made", "services/shop/web: namespaces/shop was not made"}, nil},
		"a name that is taken meanwhile": {faster("{apiVersion: v1, kind: ConfigMap, metadata: {name: leaf, namespace: shop}, data: {of: somebody}}"),
			[]string{"configmaps/shop/leaf: another object has its name by now", "secrets/shop/twig: its owner configmaps/shop/leaf was not made"}, []string{"ConfigMap boss"}},
		"an equal object is made meanwhile": {faster("{apiVersion: v1, kind: ConfigMap, metadata: {name: leaf, namespace: shop}}"), nil, []string{"Secret twig"}},
		"an address that is taken": {func(r apitest.Request) *apitest.Reply {
			if r.Method == http.MethodPost && strings.Contains(r.Body, "10.0.0.1") {
				return apitest.Refuse(422, "Invalid", "spec.clusterIP: Invalid value")
			}
			return nil
		}, nil, []string{"Service web"}},
	} {
		t.Run(name, func(t *testing.T) {
			api = apitest.New()
			tree := records(t, shop)
			api.Intercept(c.refuse)
			failed, _ := restored(t, tree, api.Config())
			for _, want := range c.failed {
				if !slices.ContainsFunc(failed, func(f string) bool { return strings.HasPrefix(f, want) }) {
					t.Errorf("it does not say %q, but %q", want, failed)
				}
			}
			if c.failed == nil && failed != nil {
				t.Errorf("it fails: %q", failed)
			}
			is := state(t, tree, api)
			for _, want := range c.there {
				if is[want] == nil {
					t.Errorf("%s is not there", want)
				}
			}
		})
	}
}

// TestWhatTheUserMayNotGrantIsRefusedBefore: RBAC says so when it is written, and so it is tried.
func TestWhatTheUserMayNotGrantIsRefusedBefore(t *testing.T) {
	forbidden := apitest.Refuse(403, "Forbidden", "attempting to grant RBAC permissions not currently held")
	for name, c := range map[string]struct {
		kind    string
		outcome restore.Outcome
		reply   *apitest.Reply
		tried   string
		refused string
	}{
		"a Role":                      {"roles." + rbac, restore.Create, forbidden, "POST", "you may not create it: attempting to grant RBAC permissions not currently held"},
		"a Role that is replaced":     {"roles." + rbac, restore.Replace, forbidden, "PUT", "you may not update it: attempting to grant RBAC permissions not currently held"},
		"one that the user may grant": {"rolebindings." + rbac, restore.Create, &apitest.Reply{Code: 201, Body: map[string]any{"kind": "RoleBinding", "apiVersion": rbac + "/v1"}}, "POST", ""},
		"a namespace that is not yet": {"roles." + rbac, restore.Create, apitest.Refuse(404, "NotFound", "namespaces \"shop\" not found"), "POST", ""},
		"no answer":                   {"roles." + rbac, restore.Create, apitest.Refuse(500, "InternalError", "a webhook"), "POST", ""},
		"one that is there":           {"roles." + rbac, restore.Patch, forbidden, "", ""},
		"what grants nothing":         {"configmaps", restore.Create, forbidden, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			tried := ""
			api := apitest.New()
			api.Intercept(func(r apitest.Request) *apitest.Reply {
				if strings.Contains(r.Path, "selfsubject") {
					return nil
				}
				if tried = r.Method; r.Query != "dryRun=All" {
					t.Errorf("it was written: %+v", r)
				}
				return c.reply
			})
			client, err := dynamic.NewForConfig(api.Config())
			if err != nil {
				t.Fatal(err)
			}
			s := &restore.Step{Ref: restore.Ref{Kind: schema.ParseGroupResource(c.kind), Namespace: "shop", Name: "x"}, Version: "v1", Outcome: c.outcome,
				Object: &unstructured.Unstructured{Object: map[string]any{"kind": "Role", "apiVersion": rbac + "/v1", "metadata": map[string]any{"name": "x"}}}}
			Refuse(t.Context(), client, &restore.Plan{Steps: []*restore.Step{s}})
			if s.Refused != c.refused || tried != c.tried {
				t.Errorf("refused: %q, tried: %q; want %q and %q", s.Refused, tried, c.refused, c.tried)
			}
		})
	}
}
