package ask

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/weir-dev/weir/ask/insight"
	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/internal/testkit/apitest"
	"github.com/weir-dev/weir/policies/v1beta1"
)

// eventServer answers lists of Events: of Cascades as many pages as are asked for, and one refusal.
func eventServer(pages int) *apitest.Server {
	server := apitest.New()
	event := func(reason, name string) map[string]any {
		return map[string]any{"apiVersion": "v1", "kind": "Event", "metadata": map[string]any{"name": name, "namespace": "shop"}, "reason": reason}
	}
	server.Intercept(func(r apitest.Request) *apitest.Reply {
		query, err := url.ParseQuery(r.Query)
		if err != nil || r.Path != "/api/v1/namespaces/shop/events" {
			return apitest.Refuse(http.StatusForbidden, "Forbidden", "not you")
		}
		list := map[string]any{"apiVersion": "v1", "kind": "EventList", "metadata": map[string]any{"resourceVersion": "1"}}
		page := 0
		_, _ = fmt.Sscan(query.Get("continue"), &page)
		var items []map[string]any
		if query.Get("fieldSelector") == "source=weir" && page < pages {
			for i := range eventPage {
				items = append(items, event(v1beta1.ReasonCascade, fmt.Sprintf("%d-%d", page, i)))
			}
			list["metadata"] = map[string]any{"resourceVersion": "1", "continue": fmt.Sprint(page + 1)}
		} else {
			items = append(items, event(v1beta1.ReasonCollectionRefused, "refusal"))
		}
		list["items"] = items
		return &apitest.Reply{Code: http.StatusOK, Body: list}
	})
	return server
}

// TestManyCascadesHideNoRefusal: Events come in pages, and what an object waits for is read though
// there are more Cascades than are read.
func TestManyCascadesHideNoRefusal(t *testing.T) {
	for pages, missed := range map[int][]string{
		0: nil, 3: nil,
		1000: {"all Events Cascade in the namespace shop"},
	} {
		client, err := dynamic.NewForConfig(eventServer(pages).Config())
		if err != nil {
			t.Fatal(err)
		}
		w := insight.NewWorld("shop", nil)
		refused := 0
		events := (&factReader{client, w}).events(t.Context(), []string{"shop"})
		for i := range events {
			if events[i].Reason == v1beta1.ReasonCollectionRefused {
				refused++
			}
		}
		var told []string
		for _, u := range w.Unread() {
			told = append(told, u.Kind)
		}
		if refused != 1 || len(events) != min(pages*eventPage, mostEvents)+1 || !slices.Equal(told, missed) {
			t.Errorf("of %d pages: %d Events, %d refusals, not read: %q", pages, len(events), refused, told)
		}
	}
}

// TestFactsThatMayNotBeReadAreNamedOnce: also where two namespaces are of interest, and one of them
// may be read.
func TestFactsThatMayNotBeReadAreNamedOnce(t *testing.T) {
	client, err := dynamic.NewForConfig(eventServer(0).Config())
	if err != nil {
		t.Fatal(err)
	}
	w := insight.NewWorld("shop", nil)
	w.NotListed(podKind.GroupResource(), true, "not you")
	r := &factReader{client, w}
	r.events(t.Context(), []string{"shop", "default"})
	r.list(t.Context(), podKind, "shop")
	if r.gone(t.Context(), nodeKind, "n1") != nil || r.get(t.Context(), heldKind, "requested.pods") != nil {
		t.Error("what may not be read is there, or gone")
	}
	(&components{client: client}).of(t.Context(), w, []string{"service.kubernetes.io/load-balancer-cleanup"})
	(&components{client: client}).of(t.Context(), w, []string{"service.kubernetes.io/load-balancer-cleanup"})
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
