package controller

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/policies/apitest"
)

var gadget = graph.Ref{Kind: gadgetKind, Namespace: "shop", Name: "g", UID: "uid-g"}

// TestAPIThatKnowsNoPartialObjectsIsUnderstood: it sends whole objects, because the Accept header ends with
// what every API has.
func TestAPIThatKnowsNoPartialObjectsIsUnderstood(t *testing.T) {
	e := newEdge(t, func(next http.RoundTripper) http.RoundTripper {
		return tripper(func(r *http.Request) (*http.Response, error) {
			if accept := r.Header.Get("Accept"); !strings.HasSuffix(accept, ",application/json") {
				t.Errorf("%s: Accept is %q", r.URL.Path, accept)
			}
			r = r.Clone(r.Context())
			r.Header.Set("Accept", "application/json")
			return next.RoundTrip(r)
		})
	})
	e.api.Put("gadgets", "{apiVersion: example.com/v1, kind: Gadget, metadata: {name: g, namespace: shop, finalizers: [a]}, spec: {size: 1}}")
	m, err := e.req.getObject(t.Context(), gadget)
	if err != nil || m.UID != gadget.UID || len(m.Finalizers) != 1 {
		t.Errorf("get: %v, %v", m, err)
	}
	e.api.Intercept(func(r apitest.Request) *apitest.Reply {
		if r.Path != "/apis/example.com/v1/namespaces/shop/gadgets" {
			return nil
		}
		return &apitest.Reply{Code: 200, Body: map[string]any{"kind": "GadgetList", "apiVersion": "example.com/v1", "items": []any{e.api.Get(key(gadgetKind, "g"))}}}
	})
	items, err := e.req.list(t.Context(), gadgetKind, "shop")
	if err != nil || len(items) != 1 || items[0].UID != gadget.UID {
		t.Errorf("list: %v, %v", items, err)
	}
}

// TestListOfMetadataInJSONIsAList: that is how aggregated APIs and custom resources send it.
func TestListOfMetadataInJSONIsAList(t *testing.T) {
	e := newEdge(t, nil)
	e.api.Put("gadgets", "{apiVersion: example.com/v1, kind: Gadget, metadata: {name: g, namespace: shop}}")
	items, err := e.req.list(t.Context(), gadgetKind, "shop")
	if err != nil || len(items) != 1 || items[0].UID != gadget.UID {
		t.Errorf("list: %v, %v", items, err)
	}
}

// TestAnswerWithoutAUIDIsNone: nobody can say what it is about, least of all that the object is another.
func TestAnswerWithoutAUIDIsNone(t *testing.T) {
	for name, body := range map[string]any{
		"metadata without one":    map[string]any{"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": map[string]any{"name": "g"}},
		"whole object without":    map[string]any{"kind": "Gadget", "apiVersion": "example.com/v1", "metadata": map[string]any{"name": "g"}},
		"something else entirely": map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Success"},
		"nothing":                 map[string]any{},
	} {
		e := newEdge(t, nil)
		e.api.Intercept(func(apitest.Request) *apitest.Reply { return &apitest.Reply{Code: 200, Body: body} })
		if m, err := e.req.getObject(t.Context(), gadget); err == nil {
			t.Errorf("%s: get answered %v", name, m)
		}
		claim := graph.Claim{APIVersion: "example.com/v1", Kind: "Gadget", Namespace: "shop", Name: "g", UID: "uid-g", Resource: gadgetKind, Namespaced: true}
		if answer, _ := e.req.look(t.Context(), claim); answer != graph.Unanswered {
			t.Errorf("%s: the lookup has the answer %d", name, answer)
		}
		if items, err := e.req.list(t.Context(), gadgetKind, "shop"); err == nil {
			t.Errorf("%s: list answered %v", name, items)
		}
	}
}

// TestOnlyOurOwnEndIsAnEnd: a cancellation in what somebody else says must not make an object be forgotten.
func TestOnlyOurOwnEndIsAnEnd(t *testing.T) {
	e := newEdge(t, func(http.RoundTripper) http.RoundTripper {
		return tripper(func(*http.Request) (*http.Response, error) {
			return nil, fmt.Errorf("http2: stream ended: %w", context.Canceled)
		})
	})
	if err := e.req.delete(t.Context(), gadget, "Background"); outcomeOf(err) != failed {
		t.Errorf("a connection that was cancelled: %q (%v), want %q", outcomeOf(err), err, failed)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := e.req.delete(ctx, gadget, "Background"); outcomeOf(err) != cancelled || !errors.Is(err, context.Canceled) {
		t.Errorf("our own end: %q (%v), want %q", outcomeOf(err), err, cancelled)
	}
}
