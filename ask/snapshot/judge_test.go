package snapshot

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/ask/insight"
	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/internal/testkit/apitest"
	"github.com/weir-dev/weir/policies"
	"github.com/weir-dev/weir/policies/v1beta1"
)

const guard = `
apiVersion: weir.dev/v1beta1
kind: DeletionPolicy
metadata: {name: guard, uid: guard}
spec:
  match:
    resources: [{apiGroups: [""], resources: [configmaps]}]
    namespaceSelector: {matchLabels: {guarded: "yes"}}
  protection: {confirmation: Required, inCascades: Ignore}
`

// TestWhatPoliciesRestOnMayBeForbidden: then it is not known whether they refuse, which is told
// once, and the plan is made all the same.
func TestWhatPoliciesRestOnMayBeForbidden(t *testing.T) {
	for path, c := range map[string]struct{ refused, doubt, missed string }{
		"":                     {refused: "confirm"},
		"/api/v1/namespaces/x": {doubt: `the namespace "x", by whose labels policies select, could not be read: not you`, missed: `the namespace "x", by whose labels policies select,`},
		"/apis/authentication.k8s.io/v1/selfsubjectreviews": {doubt: "the API server does not say who you are: not you", missed: "who you are, for policies to judge"},
	} {
		t.Run(path, func(t *testing.T) {
			server := apitest.New()
			asked := 0
			server.Intercept(func(r apitest.Request) *apitest.Reply {
				if r.Path == path {
					asked++
					return apitest.Refuse(http.StatusForbidden, "Forbidden", "not you")
				}
				return nil
			})
			server.Put("namespaces", "{apiVersion: v1, kind: Namespace, metadata: {name: x, uid: x, labels: {guarded: \"yes\"}}}")
			server.Put("deletionpolicies", guard)
			kind := func(group, resource, kind string) graph.Resource {
				return graph.Resource{Group: group, Resource: resource, Kind: kind, Version: "v1", Versions: []string{"v1"}, Namespaced: group == "", Collected: true}
			}
			w := insight.NewWorld("x", []graph.Resource{kind("", "configmaps", "ConfigMap"), kind(v1beta1.GroupVersion.Group, "deletionpolicies", "DeletionPolicy")})
			var objects []metav1.PartialObjectMetadata
			for _, name := range []string{"a", "b"} {
				objects = append(objects, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: name, UID: types.UID(name)}})
			}
			w.List(schema.GroupResource{Resource: "configmaps"}, "1", objects)
			judge, err := (&Reader{Config: server.Config()}).Policies(t.Context(), w)
			if err != nil || judge == nil {
				t.Fatalf("policies: %v, %v", judge, err)
			}
			d := insight.Deletion{Propagation: metav1.DeletePropagationBackground, Enforce: judge.Enforce(t.Context())}
			for _, o := range objects {
				whole := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
				whole.SetNamespace("x")
				whole.SetName(o.Name)
				whole.SetUID(o.UID)
				v := judge.Judge(t.Context(), whole, schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, d.Propagation)
				if v.Doubt != c.doubt || v.Refused != (c.refused != "") || !strings.Contains(v.Message, c.refused) {
					t.Errorf("%s: refused %t, %q, in doubt: %q", o.Name, v.Refused, v.Message, v.Doubt)
				}
				v.Object = insight.Object{Kind: "configmaps", Namespace: "x", Name: o.Name, UID: o.UID}
				d.Roots, d.Verdicts = append(d.Roots, o.UID), append(d.Verdicts, v)
			}
			plan := w.Plan(d)
			if plan.Totals().Deleted != 2 || plan.Incomplete() != (c.doubt != "") {
				t.Errorf("%+v, incomplete: %t", plan.Totals(), plan.Incomplete())
			}
			if c.missed == "" && len(plan.Unread) > 0 || c.missed != "" && (len(plan.Unread) != 1 || plan.Unread[0].Kind != c.missed || !plan.Unread[0].Forbidden) {
				t.Errorf("not read: %+v", plan.Unread)
			}
			if asked > 1 {
				t.Errorf("%d requests for what is refused, want one", asked)
			}
		})
	}
}

// owning is a World of a namespace in which the Secret web owns some of the ConfigMaps: the first
// of so many, or the last; and the names of those. Every one of them, or those that are named, has
// the label keep.
func owning(all, owned int, last bool, kept ...string) (w *insight.World, objects []metav1.PartialObjectMetadata) {
	kind := func(group, resource, kind string) graph.Resource {
		return graph.Resource{Group: group, Resource: resource, Kind: kind, Version: "v1", Versions: []string{"v1"}, Namespaced: group == "", Collected: true}
	}
	w = insight.NewWorld("shop", []graph.Resource{kind("", "configmaps", "ConfigMap"), kind("", "secrets", "Secret"), kind(v1beta1.GroupVersion.Group, "deletionpolicies", "DeletionPolicy")})
	for i := range all {
		m := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprintf("c%05d", i), ResourceVersion: "1"}}
		m.UID = types.UID("uid-" + m.Name)
		if i < owned && !last || i >= all-owned && last {
			m.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Secret", Name: "web", UID: "uid-web"}}
		}
		if slices.Contains(kept, m.Name) || len(kept) == 0 {
			m.Labels = map[string]string{"keep": "yes"}
		}
		objects = append(objects, m)
	}
	w.List(schema.GroupResource{Resource: "secrets"}, "1", []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "uid-web", ResourceVersion: "1"}}})
	came := slices.Clone(objects)
	slices.Reverse(came) // how they come is not how an API server lists them
	w.List(schema.GroupResource{Resource: "configmaps"}, "1", came)
	return w, objects
}

// TestACascadeIsJudgedWithinTheBoundsOfTheWebhook: what the webhook would find out by reading so
// much is what the plan says, and so is that it would not find out. webhook/cascade_test.go has the
// same of the webhook.
func TestACascadeIsJudgedWithinTheBoundsOfTheWebhook(t *testing.T) {
	const selector, nothing, unsure = `, objectSelector: {matchLabels: {keep: "yes"}}`, "none", "did not look at all dependents of"
	condition := func(expression string) string {
		return `, matchConditions: [{name: c, expression: "` + expression + `"}]`
	}
	metadata, full := policies.BoundsOf(false), policies.BoundsOf(true)
	for name, c := range map[string]struct {
		all, owned int
		last       bool     // of all, the last ones are owned
		kept       []string // which have the label; none named: all
		match      string
		says       string // empty: it is not refused
		requests   int    // about ConfigMaps, at most
	}{
		"more than are looked at, none of which is selected": {5000, 5000, false, []string{nothing}, selector, unsure, 0},
		"more than are looked at, and one of these is":       {5000, 5000, true, []string{"c04999"}, selector, "1 configmaps (c04999)", 0},
		"more of the kind than are read":                     {5000, 300, false, nil, condition("oldObject.metadata.name == 'c04999'"), unsure, 0},
		"of which those are that go":                         {5000, 300, true, nil, condition("false"), unsure, 0},
		"of which the selector leaves few":                   {5000, 300, false, []string{nothing}, selector, "", 0},
		"as many of the kind as are read":                    {4000, 300, true, nil, condition("false"), "", 0},
		"the last of them is protected":                      {4000, 300, true, nil, condition("oldObject.metadata.name == 'c03999'"), "1 configmaps (c03999)", 0},
		"few of many":                                        {5000, metadata.Single, true, nil, condition("oldObject.metadata.name == 'c00000'"), "", 0},
		"few, and all of them":                               {500, full.Single, false, nil, condition("!has(oldObject.data)"), "", full.Single},
		"many, and all of them":                              {300, 100, false, nil, condition("has(oldObject.data) && oldObject.metadata.name == 'c00099'"), "1 configmaps (c00099)", 15},
		"too many, and all of them":                          {500, 100, false, nil, condition("!has(oldObject.data)"), unsure, full.Pages},
		"too many, but enough is known":                      {5000, 300, false, nil, "", "3 configmaps (c00000, c00001, c00002), and perhaps more", 0},
	} {
		t.Run(name, func(t *testing.T) {
			w, objects := owning(c.all, c.owned, c.last, c.kept...)
			server := apitest.New()
			server.Put("namespaces", "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}")
			server.Put("deletionpolicies", `{apiVersion: weir.dev/v1beta1, kind: DeletionPolicy, metadata: {name: keep, uid: keep}, spec: {match: {resources: [{apiGroups: [""], resources: [configmaps]}]`+c.match+`}, protection: {confirmation: Required}}}`)
			for i := 0; i < len(objects) && c.requests > 0; i++ {
				server.Put("configmaps", fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: shop, uid: uid-%[1]s}, data: {a: b}}`, objects[i].Name))
			}
			requests := 0
			server.Intercept(func(r apitest.Request) *apitest.Reply {
				if strings.Contains(r.Path, "/configmaps") && !strings.HasSuffix(r.Path, v1beta1.FilePolicies) {
					requests++
				}
				if strings.HasSuffix(r.Path, "/selfsubjectaccessreviews") { // what was listed may be told
					t.Error("it is asked what the user may list")
				}
				return nil
			})
			judge, err := (&Reader{Config: server.Config()}).Policies(t.Context(), w)
			if err != nil {
				t.Fatal(err)
			}
			web := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "web", "namespace": "shop", "uid": "uid-web"}}}
			v := judge.Judge(t.Context(), web, schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, metav1.DeletePropagationBackground)
			if v.Refused != (c.says != "" && c.says != unsure) || !strings.Contains(v.Message+strings.Join(v.Warnings, ""), c.says) || v.Doubt != "" || requests > c.requests {
				t.Errorf("refused %t: %.300s; in doubt: %q; %d requests, want %d at most", v.Refused, v.Message, v.Doubt, requests, c.requests)
			}
		})
	}
}

// TestWhatACollectorIsRefused: an object that a policy protects, and a Namespace that holds one, as
// the webhook refuses both.
func TestWhatACollectorIsRefused(t *testing.T) {
	kind := func(group, resource, kind string, namespaced bool) graph.Resource {
		return graph.Resource{Group: group, Resource: resource, Kind: kind, Version: "v1", Versions: []string{"v1"}, Namespaced: namespaced, Collected: true}
	}
	w := insight.NewWorld("", []graph.Resource{kind("", "namespaces", "Namespace", false), kind("", "configmaps", "ConfigMap", true),
		kind(v1beta1.GroupVersion.Group, "deletionpolicies", "DeletionPolicy", false)})
	meta := func(namespace, name string, labels map[string]string) metav1.PartialObjectMetadata {
		return metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, UID: types.UID("uid-" + name), ResourceVersion: "1", Labels: labels}}
	}
	w.List(schema.GroupResource{Resource: "namespaces"}, "1", []metav1.PartialObjectMetadata{meta("", "shop", nil), meta("", "other", nil)})
	w.List(schema.GroupResource{Resource: "configmaps"}, "1", []metav1.PartialObjectMetadata{
		meta("shop", "precious", map[string]string{"keep": "yes"}), meta("shop", "free", nil), meta("other", "free-too", nil)})
	server := apitest.New()
	for _, name := range []string{"shop", "other"} {
		server.Put("namespaces", "{apiVersion: v1, kind: Namespace, metadata: {name: "+name+"}}")
	}
	server.Put("deletionpolicies", `{apiVersion: weir.dev/v1beta1, kind: DeletionPolicy, metadata: {name: keep, uid: keep}, spec: {match: {
		resources: [{apiGroups: [""], resources: [configmaps]}], objectSelector: {matchLabels: {keep: "yes"}}}, protection: {confirmation: Required}}}`)
	judge, err := (&Reader{Config: server.Config()}).Policies(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	for name, says := range map[string]string{
		"precious": `configmaps "precious" in namespace "shop" may not be deleted without confirmation`, "free": "", "free-too": "",
		"shop": `namespaces "shop" may not be deleted: protected objects would be deleted with it`, "other": "",
	} {
		v, _ := w.Graph.Find(types.UID("uid-" + name))
		why, doubt := judge.Protects(t.Context())(v)
		if (why == "") != (says == "") || !strings.Contains(why, says) || doubt != "" {
			t.Errorf("%s: %q, in doubt: %q; want %q", name, why, doubt, says)
		}
	}
}

// TestACascadeThatCannotBeReadIsDoubted: be it object by object, or in a list.
func TestACascadeThatCannotBeReadIsDoubted(t *testing.T) {
	for owned, path := range map[int]string{3: "/configmaps/c00001", 100: "/configmaps"} {
		w, objects := owning(200, owned, false)
		server := apitest.New()
		server.Put("namespaces", "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}")
		server.Put("deletionpolicies", `{apiVersion: weir.dev/v1beta1, kind: DeletionPolicy, metadata: {name: keep, uid: keep}, spec: {match: {resources: [{apiGroups: [""], resources: [configmaps]}], matchConditions: [{name: c, expression: "!has(oldObject.data)"}]}, protection: {confirmation: Required}}}`)
		for i := range objects {
			server.Put("configmaps", fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: shop, uid: uid-%[1]s}, data: {a: b}}`, objects[i].Name))
		}
		server.Intercept(func(r apitest.Request) *apitest.Reply {
			if strings.HasSuffix(r.Path, path) {
				return apitest.Refuse(http.StatusForbidden, "Forbidden", "not you")
			}
			return nil
		})
		judge, err := (&Reader{Config: server.Config()}).Policies(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		web := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "web", "namespace": "shop", "uid": "uid-web"}}}
		v := judge.Judge(t.Context(), web, schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, metav1.DeletePropagationBackground)
		if v.Refused || v.Doubt != "configmaps that would also be deleted could not be read: not you" || len(w.Unread()) != 1 || !w.Unread()[0].Forbidden {
			t.Errorf("%d: refused %t, in doubt: %q, unread %+v", owned, v.Refused, v.Doubt, w.Unread())
		}
	}
}
