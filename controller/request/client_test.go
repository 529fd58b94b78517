package request

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/weir-dev/weir/controller/follow"
	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/internal/testkit/apitest"
	"github.com/weir-dev/weir/internal/testkit/fixture"
)

var gadget = graph.Ref{Kind: fixture.Gadgets, Namespace: "shop", Name: "g", UID: "uid-g"}

// TestAPIThatKnowsNoPartialObjectsIsUnderstood: it sends whole objects, because the Accept header
// ends with what every API has.
func TestAPIThatKnowsNoPartialObjectsIsUnderstood(t *testing.T) {
	e := newAsking(t, func(next http.RoundTripper) http.RoundTripper {
		return fixture.Tripper(func(r *http.Request) (*http.Response, error) {
			if accept := r.Header.Get("Accept"); !strings.HasSuffix(accept, ",application/json") {
				t.Errorf("%s: Accept is %q", r.URL.Path, accept)
			}
			r = r.Clone(r.Context())
			r.Header.Set("Accept", "application/json")
			return next.RoundTrip(r)
		})
	})
	e.api.Put("gadgets", "{apiVersion: example.com/v1, kind: Gadget, metadata: {name: g, namespace: shop, finalizers: [a]}, spec: {size: 1}}")
	m, err := e.req.GetObject(t.Context(), gadget)
	if err != nil || m.UID != gadget.UID || len(m.Finalizers) != 1 {
		t.Errorf("get: %v, %v", m, err)
	}
	e.api.Intercept(func(r apitest.Request) *apitest.Reply {
		if r.Path != "/apis/example.com/v1/namespaces/shop/gadgets" {
			return nil
		}
		return &apitest.Reply{Code: 200, Body: map[string]any{"kind": "GadgetList", "apiVersion": "example.com/v1", "items": []any{e.api.Get("gadgets.example.com/shop/g")}}}
	})
	items, err := e.list(t.Context(), fixture.Gadgets, "shop")
	if err != nil || len(items) != 1 || items[0].UID != gadget.UID {
		t.Errorf("list: %v, %v", items, err)
	}
}

// TestListOfMetadataInJSONIsAList: that is how aggregated APIs and custom resources send it.
func TestListOfMetadataInJSONIsAList(t *testing.T) {
	e := newAsking(t, nil)
	e.api.Put("gadgets", "{apiVersion: example.com/v1, kind: Gadget, metadata: {name: g, namespace: shop}}")
	items, err := e.list(t.Context(), fixture.Gadgets, "shop")
	if err != nil || len(items) != 1 || items[0].UID != gadget.UID {
		t.Errorf("list: %v, %v", items, err)
	}
}

// TestAnswerWithoutAUIDIsNone: it cannot be said what it is about, least of all that the object is
// another.
func TestAnswerWithoutAUIDIsNone(t *testing.T) {
	for name, body := range map[string]any{
		"metadata without one":    map[string]any{"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": map[string]any{"name": "g"}},
		"whole object without":    map[string]any{"kind": "Gadget", "apiVersion": "example.com/v1", "metadata": map[string]any{"name": "g"}},
		"something else entirely": map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Success"},
		"nothing":                 map[string]any{},
	} {
		e := newAsking(t, nil)
		e.api.Intercept(func(apitest.Request) *apitest.Reply { return &apitest.Reply{Code: 200, Body: body} })
		if m, err := e.req.GetObject(t.Context(), gadget); err == nil {
			t.Errorf("%s: get answered %v", name, m)
		}
		claim := graph.Claim{APIVersion: "example.com/v1", Kind: "Gadget", Namespace: "shop", Name: "g", UID: "uid-g", Resource: fixture.Gadgets, Namespaced: true}
		if answer, _ := e.req.Lookup(t.Context(), claim); answer != graph.Unanswered {
			t.Errorf("%s: the lookup has the answer %d", name, answer)
		}
		if items, err := e.list(t.Context(), fixture.Gadgets, "shop"); err == nil {
			t.Errorf("%s: list answered %v", name, items)
		}
	}
}

// TestOnlyOurOwnEndIsAnEnd: a cancellation in what another server says must not make an object be
// forgotten.
func TestOnlyOurOwnEndIsAnEnd(t *testing.T) {
	e := newAsking(t, func(http.RoundTripper) http.RoundTripper {
		return fixture.Tripper(func(*http.Request) (*http.Response, error) {
			return nil, fmt.Errorf("http2: stream ended: %w", context.Canceled)
		})
	})
	if err := e.req.Delete(t.Context(), gadget, "Background"); OutcomeOf(err) != Failed {
		t.Errorf("a connection that was cancelled: %q (%v), want %q", OutcomeOf(err), err, Failed)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := e.req.Delete(ctx, gadget, "Background"); OutcomeOf(err) != Cancelled || !errors.Is(err, context.Canceled) {
		t.Errorf("our own end: %q (%v), want %q", OutcomeOf(err), err, Cancelled)
	}
}

// Test429OfTheAPIServerIsForAll: its own limits do not know kinds.
func Test429OfTheAPIServerIsForAll(t *testing.T) {
	for name, tc := range map[string]struct {
		kind schema.GroupResource
		body string
		want verdict
	}{
		"limits of the API server":           {fixture.ConfigMaps, "Too many requests, please try again later.", throttledByServer},
		"storage of one kind":                {fixture.ConfigMaps, "", throttledByKind},
		"limits, maybe of an aggregated API": {fixture.Gadgets, "Too many requests, please try again later.", throttledByKind},
	} {
		e := newAsking(t, func(http.RoundTripper) http.RoundTripper {
			return fixture.Tripper(func(r *http.Request) (*http.Response, error) {
				if tc.body != "" {
					return fixture.Reply(r, 429, "1", tc.body), nil
				}
				status := apierrors.NewTooManyRequests("storage is initializing", 1).Status()
				status.Kind, status.APIVersion = "Status", "v1"
				data, err := json.Marshal(status)
				if err != nil {
					return nil, err
				}
				answer := fixture.Reply(r, 429, "1", string(data))
				answer.Header.Set("Content-Type", "application/json")
				return answer, nil
			})
		})
		err := e.req.Delete(t.Context(), graph.Ref{Kind: tc.kind, Namespace: "shop", Name: "x", UID: "x"}, "Background")
		if v, after := judge(tc.kind, err); v != tc.want || after != time.Second {
			t.Errorf("%s: verdict %d after %s, want %d after 1s (%v)", name, v, after, tc.want, err)
		}
	}
}

// asking is a requester on an API server in memory, and nothing else.
type asking struct {
	api *apitest.Server
	req *Client
}

// newAsking prepares one. through, if there is one, stands between its requests and the API server.
// list is what a list shows; none of it if it is not whole.
func (e asking) list(ctx context.Context, kind schema.GroupResource, namespace string) (items []metav1.PartialObjectMetadata, err error) {
	if err := e.req.List(ctx, kind, namespace, func(m *metav1.PartialObjectMetadata) { items = append(items, *m) }); err != nil {
		return nil, err
	}
	return items, nil
}

func newAsking(t *testing.T, through func(http.RoundTripper) http.RoundTripper) asking {
	t.Helper()
	api := apitest.New()
	config := api.Config()
	if through != nil {
		config.Transport = through(config.Transport)
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	req, err := New(config, client, NewLimiter(DefaultConcurrency), &follow.History{}, prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	req.Serve(fixture.Kinds)
	return asking{api: api, req: req}
}

// TestAbsenceIsNotBelievedOfAKindThatIsDefinedOtherwise: an API server that has not seen that a
// definition was made again with another scope looks for its objects where there are none.
func TestAbsenceIsNotBelievedOfAKindThatIsDefinedOtherwise(t *testing.T) {
	claim := graph.Claim{APIVersion: "example.com/v1", Kind: "Gadget", Namespace: "shop", Name: "g", UID: "uid-g", Resource: fixture.Gadgets, Namespaced: true}
	definition := "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gadgets.example.com"
	for name, tc := range map[string]struct {
		reply *apitest.Reply // to who asks for the definition; nil: there is none
		want  graph.Answer
	}{
		"not defined":       {nil, graph.Absent},
		"defined so":        {&apitest.Reply{Code: 200, Body: defined("Namespaced")}, graph.Absent},
		"defined otherwise": {&apitest.Reply{Code: 200, Body: defined("Cluster")}, graph.Unanswered},
		"no answer":         {&apitest.Reply{Code: 500, Body: map[string]any{}}, graph.Unanswered},
		"may not be read": {&apitest.Reply{Code: 403, Body: map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403}},
			graph.Absent},
	} {
		e := newAsking(t, nil)
		e.api.Intercept(func(r apitest.Request) *apitest.Reply {
			if r.Path == definition {
				return tc.reply
			}
			return nil
		})
		if answer, why := e.req.Lookup(t.Context(), claim); answer != tc.want {
			t.Errorf("%s: the lookup has the answer %s (%s), want %s", name, answer, why, tc.want)
		}
	}
}

func defined(scope string) map[string]any {
	return map[string]any{"kind": "CustomResourceDefinition", "apiVersion": "apiextensions.k8s.io/v1",
		"metadata": map[string]any{"name": "gadgets.example.com", "uid": "uid-d"}, "spec": map[string]any{"scope": scope}}
}
