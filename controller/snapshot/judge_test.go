package snapshot

import (
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/insight"
	"github.com/weir-dev/weir/policies/apitest"
	"github.com/weir-dev/weir/policies/v1alpha1"
)

const guard = `
apiVersion: weir.dev/v1alpha1
kind: DeletionPolicy
metadata: {name: guard, uid: guard}
spec:
  match:
    resources: [{apiGroups: [""], resources: [configmaps]}]
    namespaceSelector: {matchLabels: {guarded: "yes"}}
  protection: {confirmation: Required, inCascades: Ignore}
`

// TestWhatPoliciesRestOnMayBeForbidden: then it is not known whether they refuse, which is told once, and the plan is made all the same.
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
			w := insight.NewWorld("x", []graph.Resource{kind("", "configmaps", "ConfigMap"), kind(v1alpha1.GroupVersion.Group, "deletionpolicies", "DeletionPolicy")})
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
