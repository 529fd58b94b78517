package ask

import (
	"net/http"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/weir-dev/weir/ask/insight"
	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/internal/testkit/apitest"
)

// eventServer answers lists of Events in the namespace shop, and nothing else.
func eventServer() *apitest.Server {
	server := apitest.New()
	server.Intercept(func(r apitest.Request) *apitest.Reply {
		if r.Path != "/api/v1/namespaces/shop/events" {
			return apitest.Refuse(http.StatusForbidden, "Forbidden", "not you")
		}
		return &apitest.Reply{Code: http.StatusOK, Body: map[string]any{"apiVersion": "v1", "kind": "EventList", "metadata": map[string]any{"resourceVersion": "1"}}}
	})
	return server
}

// TestFactsThatMayNotBeReadAreNamedOnce: also where two namespaces are of interest, and one of them
// may be read.
func TestFactsThatMayNotBeReadAreNamedOnce(t *testing.T) {
	client, err := dynamic.NewForConfig(eventServer().Config())
	if err != nil {
		t.Fatal(err)
	}
	w := insight.NewWorld("shop", nil)
	w.NotListed(podKind.GroupResource(), true, "not you")
	r := &factReader{client, w}
	r.events(t.Context(), "shop", "default")
	r.list(t.Context(), podKind, "shop")
	if r.gone(t.Context(), nodeKind, "n1") != nil || r.get(t.Context(), heldKind, "requested.pods") != nil {
		t.Error("what may not be read is there, or gone")
	}
	r.components(t.Context())
	r.components(t.Context())
	var told []string
	for _, u := range w.Unread() {
		told = append(told, u.Kind)
	}
	want := []string{
		"events in the namespace default", "heldcollections.weir.dev requested.pods", "nodes n1", "pods",
		"workloads of all namespaces (which tell whether a component runs)",
	}
	if !slices.Equal(told, want) {
		t.Errorf("not read: %q\nwant %q", told, want)
	}
}

// TestPendingNamesWhoRefusesTheContentOfANamespace: as its conditions say, and not the namespace
// controller, which is refused.
func TestPendingNamesWhoRefusesTheContentOfANamespace(t *testing.T) {
	server := apitest.New()
	server.Put("namespaces", `{apiVersion: v1, kind: Namespace, metadata: {name: shop, uid: shop}, status: {conditions: [
		{type: NamespaceDeletionContentFailure, status: "True", message: "ValidatingAdmissionPolicy 'fixed' with binding 'b' denied request: no"}]}}`)
	client, err := dynamic.NewForConfig(server.Config())
	if err != nil {
		t.Fatal(err)
	}
	kinds := []graph.Resource{
		{Version: "v1", Resource: "namespaces", Kind: "Namespace", Versions: []string{"v1"}, Collected: true},
		{Version: "v1", Resource: "configmaps", Kind: "ConfigMap", Namespaced: true, Versions: []string{"v1"}, Collected: true},
	}
	w := insight.NewWorld("", kinds)
	now := metav1.Now()
	for i, o := range []metav1.ObjectMeta{{Name: "shop", UID: "shop", DeletionTimestamp: &now}, {Name: "a", Namespace: "shop", UID: "a"}} {
		w.List(kinds[i].GroupResource(), "1", []metav1.PartialObjectMetadata{{ObjectMeta: o}})
	}
	(&factReader{client, w}).heard(t.Context(), "")
	groups := w.Pending(time.Now())
	if len(groups) != 1 || groups[0].Actor != "whoever wrote the ValidatingAdmissionPolicy fixed" {
		t.Errorf("%+v", groups)
	}
}
