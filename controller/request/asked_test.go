package request

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	protobufserializer "k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/follow"
	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/internal/testkit/apitest"
	"github.com/weir-dev/weir/internal/testkit/fixture"
)

var (
	configMap      = graph.Ref{Kind: fixture.ConfigMaps, Namespace: "shop", Name: "a", UID: "uid-a"}
	configMapsPath = "/api/v1/namespaces/shop/configmaps"
)

// sent are the requests that e makes from here on, each answered with a reply.
func (e asking) sent(reply *apitest.Reply) *[]apitest.Request {
	var all []apitest.Request
	e.api.Intercept(func(r apitest.Request) *apitest.Reply {
		all = append(all, r)
		return reply
	})
	return &all
}

// A DELETE without a uid would take the next object of that name.
func TestADeleteIsOfTheObjectThatWasDecidedAbout(t *testing.T) {
	at := configMap
	at.ResourceVersion = "7"
	for want, c := range map[string]struct {
		ref         graph.Ref
		propagation metav1.DeletionPropagation
	}{
		`{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":"uid-a"},"propagationPolicy":"Background"}`:                   {configMap, "Background"},
		`{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":"uid-a","resourceVersion":"7"},"propagationPolicy":"Orphan"}`: {at, "Orphan"},
	} {
		e := newAsking(t, nil)
		sent := e.sent(&apitest.Reply{Code: 200, Body: map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Success"}})
		if err := e.req.Delete(t.Context(), c.ref, c.propagation); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff([]apitest.Request{{Method: "DELETE", Path: configMapsPath + "/a", Body: want}}, *sent); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// A patch is of one object as it was, says what is to be left, and has worked if the answer shows
// it: webhooks may undo it.
func TestAPatchSaysWhatIsToBeLeft(t *testing.T) {
	owner := metav1.OwnerReference{APIVersion: "v1", Kind: "Team", Name: "t", UID: "o"}
	blocked, said, another := owner, owner, owner
	blocked.BlockOwnerDeletion, said.BlockOwnerDeletion, another.UID = new(true), new(false), "p"
	for name, c := range map[string]struct {
		action graph.Action
		body   string
		after  map[string]any // in the metadata of the answer
		want   error
	}{
		"one finalizer of two": {graph.Action{Verb: graph.Unfinalize, Finalizer: "orphan", Finalizers: []string{"b"}},
			`{"metadata":{"finalizers":["b"],"resourceVersion":"7","uid":"uid-a"}}`, map[string]any{"finalizers": []string{"b"}}, nil},
		"others come meanwhile": {graph.Action{Verb: graph.Unfinalize, Finalizer: "orphan", Finalizers: []string{"b"}},
			`{"metadata":{"finalizers":["b"],"resourceVersion":"7","uid":"uid-a"}}`, map[string]any{"finalizers": []string{"b", "c"}}, nil},
		"the last finalizer": {graph.Action{Verb: graph.Unfinalize, Finalizer: "orphan"},
			`{"metadata":{"finalizers":null,"resourceVersion":"7","uid":"uid-a"}}`, nil, nil},
		"it is put back": {graph.Action{Verb: graph.Unfinalize, Finalizer: "orphan"},
			`{"metadata":{"finalizers":null,"resourceVersion":"7","uid":"uid-a"}}`, map[string]any{"finalizers": []string{"orphan"}}, errNoEffect},
		"one owner of two": {graph.Action{Verb: graph.Release, Owners: []metav1.OwnerReference{owner}},
			`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Team","name":"t","uid":"o"}],"resourceVersion":"7","uid":"uid-a"}}`,
			map[string]any{"ownerReferences": []metav1.OwnerReference{owner}}, nil},
		"the last owner": {graph.Action{Verb: graph.Release},
			`{"metadata":{"ownerReferences":null,"resourceVersion":"7","uid":"uid-a"}}`, nil, nil},
		"an owner that is not blocked any more": {graph.Action{Verb: graph.Unblock, Owners: []metav1.OwnerReference{owner}},
			`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Team","name":"t","uid":"o"}],"resourceVersion":"7","uid":"uid-a"}}`,
			map[string]any{"ownerReferences": []metav1.OwnerReference{owner}}, nil},
		"that it is not blocked is said": {graph.Action{Verb: graph.Unblock, Owners: []metav1.OwnerReference{owner}},
			`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Team","name":"t","uid":"o"}],"resourceVersion":"7","uid":"uid-a"}}`,
			map[string]any{"ownerReferences": []metav1.OwnerReference{said}}, nil},
		"it is blocked again": {graph.Action{Verb: graph.Unblock, Owners: []metav1.OwnerReference{owner}},
			`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Team","name":"t","uid":"o"}],"resourceVersion":"7","uid":"uid-a"}}`,
			map[string]any{"ownerReferences": []metav1.OwnerReference{blocked}}, errNoEffect},
		"another owner takes its place": {graph.Action{Verb: graph.Release, Owners: []metav1.OwnerReference{owner}},
			`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Team","name":"t","uid":"o"}],"resourceVersion":"7","uid":"uid-a"}}`,
			map[string]any{"ownerReferences": []metav1.OwnerReference{another}}, errNoEffect},
		"the owner is put back": {graph.Action{Verb: graph.Release},
			`{"metadata":{"ownerReferences":null,"resourceVersion":"7","uid":"uid-a"}}`, map[string]any{"ownerReferences": []metav1.OwnerReference{owner}}, errNoEffect},
	} {
		e := newAsking(t, nil)
		metadata := map[string]any{"name": "a", "namespace": "shop", "uid": "uid-a"}
		for k, v := range c.after {
			metadata[k] = v
		}
		sent := e.sent(&apitest.Reply{Code: 200, Body: map[string]any{"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata}})
		c.action.Object = configMap
		if err := e.req.Patch(t.Context(), c.action, "7"); !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		if diff := cmp.Diff([]apitest.Request{{Method: "PATCH", Path: configMapsPath + "/a", Body: c.body}}, *sent); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Nothing is sent about a kind before it is known in which version it is written, nor when it is
// not served any more: a path that is guessed would be answered 404, as if the object were gone.
func TestNothingIsSentAboutAKindThatIsNotServed(t *testing.T) {
	ref := graph.Ref{Kind: fixture.Pods, Namespace: "shop", Name: "web", UID: "u"}
	for name, ask := range map[string]func(*Client) error{
		"get":           func(c *Client) error { _, err := c.GetObject(t.Context(), ref); return err },
		"get all of it": func(c *Client) error { _, _, err := c.GetFull(t.Context(), ref); return err },
		"list": func(c *Client) error {
			return c.List(t.Context(), ref.Kind, "shop", func(*metav1.PartialObjectMetadata) {})
		},
		"delete": func(c *Client) error { return c.Delete(t.Context(), ref, "Background") },
		"patch": func(c *Client) error {
			return c.Patch(t.Context(), graph.Action{Verb: graph.Release, Object: ref}, "7")
		},
	} {
		e := newAsking(t, nil)
		sent := e.sent(nil)
		e.req.Serve([]graph.Resource{{Resource: "pods", Kind: "Pod", Version: "v1"}})
		e.req.Serve(fixture.Kinds) // without pods
		if err := ask(e.req); OutcomeOf(err) != Failed || !strings.Contains(err.Error(), "does not serve pods now") || len(*sent) > 0 {
			t.Errorf("%s: %v, sent %v", name, err, *sent)
		}
		e.req.kinds.Store(nil) // before discovery
		if err := ask(e.req); err == nil || len(*sent) > 0 {
			t.Errorf("%s before discovery: %v, sent %v", name, err, *sent)
		}
		if e.req.IsGone(t.Context(), ref) {
			t.Error("what cannot be read is taken for gone")
		}
	}
}

// A list is whole or none: who deletes by it, or lets a namespace end, must not go by a part.
func TestAListIsReadToItsEnd(t *testing.T) {
	const n = 2345
	for _, broken := range []bool{false, true} {
		e := newAsking(t, nil)
		for i := range n {
			fixture.PutConfigMap(e.api, fmt.Sprintf("c%04d", i), "")
		}
		pages := 0
		e.api.Intercept(func(r apitest.Request) *apitest.Reply {
			if pages++; broken && strings.Contains(r.Query, "continue=") {
				return apitest.Refuse(500, "InternalError", "etcd")
			}
			return nil
		})
		items, err := e.list(t.Context(), fixture.ConfigMaps, "shop")
		switch {
		case broken && (err == nil || len(items) > 0):
			t.Errorf("%d items of a list that broke off, %v", len(items), err)
		case !broken && (err != nil || len(items) != n || pages != 3):
			t.Errorf("%d items in %d pages, %v", len(items), pages, err)
		}
	}
}

// An API that lists in one namespace what is in another must not have that deleted with the first.
func TestAListIsOfItsNamespace(t *testing.T) {
	for name, c := range map[string]struct {
		asked string
		items []any // namespaces of objects; nil: it does not say
		want  []string
	}{
		"as asked":                   {"shop", []any{"shop", "shop"}, []string{"shop", "shop"}},
		"it does not say":            {"shop", []any{"shop", nil}, []string{"shop", "shop"}},
		"another":                    {"shop", []any{"shop", "prod"}, nil},
		"all namespaces":             {"", []any{"shop", "prod"}, []string{"shop", "prod"}},
		"all, and one is in none":    {"", []any{"shop", nil}, nil},
		"another, although it's all": {"prod", []any{"shop", "prod"}, nil},
	} {
		e := newAsking(t, nil)
		var items []any
		for i, ns := range c.items {
			m := map[string]any{"name": fmt.Sprint("g", i), "uid": fmt.Sprint("u", i)}
			if ns != nil {
				m["namespace"] = ns
			}
			items = append(items, map[string]any{"metadata": m})
		}
		e.sent(&apitest.Reply{Code: 200, Body: map[string]any{"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": map[string]any{}, "items": items}})
		list, err := e.list(t.Context(), fixture.Gadgets, c.asked)
		var got []string
		for _, m := range list {
			got = append(got, m.Namespace)
		}
		if (err != nil) != (c.want == nil) || !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, %v, want %q", name, got, err, c.want)
		}
	}
}

// One that goes round and round would be read until the memory ends, and whoever asked for it would
// wait for ever.
func TestAListThatHasNoEndIsAnError(t *testing.T) {
	none := []any{}
	one := func(uid int) []any {
		return []any{map[string]any{"metadata": map[string]any{"namespace": "shop", "name": fmt.Sprint("g", uid), "uid": fmt.Sprint(uid)}}}
	}
	another := func(page int) string { return fmt.Sprint(page) }
	for name, c := range map[string]struct {
		token func(page int) string
		items func(page int) []any
		takes time.Duration // a page
		pages int           // at most
		want  string
	}{
		"the same page":        {func(int) string { return "more" }, func(int) []any { return none }, 0, 2, "the same page"},
		"other tokens":         {another, func(int) []any { return none }, 0, 20, "bring nothing new"},
		"the same objects":     {another, func(int) []any { return one(1) }, 0, 20, "bring nothing new"},
		"other objects":        {another, one, time.Second, 300, "list gadgets.example.com: it has not ended after 5m0s"},
		"pages that take long": {another, func(int) []any { return none }, 35 * time.Second, 9, "it has not ended after 5m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newAsking(t, func(next http.RoundTripper) http.RoundTripper {
					return fixture.Tripper(func(r *http.Request) (*http.Response, error) {
						select {
						case <-time.After(c.takes):
						case <-r.Context().Done():
							return nil, r.Context().Err()
						}
						return next.RoundTrip(r)
					})
				})
				pages := 0
				e.api.Intercept(func(apitest.Request) *apitest.Reply {
					pages++
					return &apitest.Reply{Code: 200, Body: map[string]any{"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1",
						"metadata": map[string]any{"continue": c.token(pages)}, "items": c.items(pages)}}
				})
				list, err := e.list(t.Context(), fixture.Gadgets, "shop")
				if err == nil || !strings.Contains(err.Error(), c.want) || len(list) > 0 || pages > c.pages {
					t.Errorf("%d items after %d pages, %v", len(list), pages, err)
				}
			})
		})
	}
}

// protobuf is a list of one object as API servers send it.
func protobuf(t *testing.T) []byte {
	list := &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"},
		Items: []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{Name: "g", Namespace: "shop", UID: "uid-g", Labels: map[string]string{"tier": "edge"}}}}}
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, metav1.SchemeGroupVersion)
	var b bytes.Buffer
	if err := protobufserializer.NewSerializer(scheme, scheme).Encode(list, &b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// What is not understood is an error, and no list.
func TestAListInProtobufIsUnderstood(t *testing.T) {
	whole := protobuf(t)
	for understood, answer := range map[bool][]byte{true: whole, false: append(bytes.Clone(whole), 0xff)} {
		e := newAsking(t, func(http.RoundTripper) http.RoundTripper {
			return fixture.Tripper(func(r *http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: 200, Request: r, Header: http.Header{"Content-Type": {runtime.ContentTypeProtobuf}},
					Body: io.NopCloser(bytes.NewReader(answer))}, nil
			})
		})
		items, err := e.list(t.Context(), fixture.Gadgets, "shop")
		if (err == nil) != understood {
			t.Errorf("understood: %t, want %t: %v", err == nil, understood, err)
		}
		if understood && (len(items) != 1 || items[0].UID != "uid-g" || items[0].Labels["tier"] != "edge") {
			t.Errorf("listed: %v", items)
		}
	}
}

// An answer that breaks off is no list, and a failure of the API, which is not asked all the time
// then. The encoding is not to blame.
func TestAListThatBreaksOffIsAFailure(t *testing.T) {
	whole := protobuf(t)
	var asked []string
	e := newAsking(t, func(http.RoundTripper) http.RoundTripper {
		return fixture.Tripper(func(r *http.Request) (*http.Response, error) {
			asked = append(asked, r.Header.Get("Accept"))
			return &http.Response{StatusCode: 200, Request: r, Header: http.Header{"Content-Type": {runtime.ContentTypeProtobuf}},
				Body: io.NopCloser(io.MultiReader(bytes.NewReader(whole[:len(whole)-5]), iotest.ErrReader(io.ErrUnexpectedEOF)))}, nil
		})
	})
	for range 2 {
		if items, err := e.list(t.Context(), fixture.Gadgets, "shop"); !errors.Is(err, io.ErrUnexpectedEOF) || OutcomeOf(err) != Failed || len(items) > 0 {
			t.Errorf("%v, %v", items, err)
		}
	}
	if len(asked) != 2 || asked[0] != asked[1] {
		t.Errorf("asked for %q", asked)
	}
}

// Only an answer about that very object proves anything; in doubt there is none.
func TestWhatAnswersALookup(t *testing.T) {
	claim := graph.Claim{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "a", UID: "uid-a", Resource: fixture.ConfigMaps, Namespaced: true}
	live := func(uid string) *apitest.Reply {
		return &apitest.Reply{Code: 200, Body: map[string]any{"kind": "ConfigMap", "apiVersion": "v1", "metadata": map[string]any{"name": "a", "uid": uid}}}
	}
	webhook := `admission webhook "guard.example.com" denied the request: no`
	for name, c := range map[string]struct {
		reply *apitest.Reply
		want  graph.Answer
		gone  bool // as IsGone sees it
	}{
		"it is there":              {live("uid-a"), graph.Present, false},
		"another has its name":     {live("uid-b"), graph.Absent, true},
		"there is none":            {nil, graph.Absent, true},
		"a 404 of something else":  {apitest.Refuse(404, "NotFound", "no such path"), graph.Unanswered, false},
		"it may not be read":       {apitest.Refuse(403, "Forbidden", "RBAC"), graph.Denied, false},
		"a webhook says forbidden": {apitest.Refuse(403, "Forbidden", webhook), graph.Unanswered, false},
		"the server fails":         {apitest.Refuse(500, "InternalError", "etcd"), graph.Unanswered, false},
		"too many requests":        {apitest.Refuse(429, "TooManyRequests", "later"), graph.Unanswered, false},
	} {
		e := newAsking(t, nil)
		sent := e.sent(c.reply)
		answer, why := e.req.Lookup(t.Context(), claim)
		if answer != c.want || (why == "") != (answer == graph.Present || answer == graph.Absent) {
			t.Errorf("%s: answer %s (%s), want %s", name, answer, why, c.want)
		}
		if gone := e.req.IsGone(t.Context(), configMap); gone != c.gone {
			t.Errorf("%s: gone: %t", name, gone)
		}
		claim := claim
		claim.Namespaced = false // its dependent is in a namespace, and it is in none
		e.req.Lookup(t.Context(), claim)
		if at := (*sent)[len(*sent)-1].Path; at != "/api/v1/configmaps/a" {
			t.Errorf("%s: a cluster-scoped owner is looked for at %s", name, at)
		}
		before := len(*sent)
		claim.APIVersion = "a/b/c"
		if answer, why := e.req.Lookup(t.Context(), claim); answer != graph.Unanswered || why == "" || len(*sent) != before {
			t.Errorf("%s: an apiVersion that is none has the answer %s", name, answer)
		}
	}
}

// Policies compute with what is in an object: a number that went through a float would be another.
func TestAFullObjectHasItsNumbersAsTheyAre(t *testing.T) {
	e := newAsking(t, nil)
	e.sent(&apitest.Reply{Code: 200, Body: map[string]any{"kind": "Gadget", "apiVersion": "example.com/v1",
		"metadata": map[string]any{"name": "g", "uid": "uid-g"}, "spec": map[string]any{"size": int64(9007199254740993)}}})
	full, m, err := e.req.GetFull(t.Context(), gadget)
	if err != nil || m.UID != gadget.UID {
		t.Fatalf("%v, %v", m, err)
	}
	if size := full["spec"].(map[string]any)["size"]; size != int64(9007199254740993) {
		t.Errorf("%T %v", size, size)
	}
	for name, body := range map[string]any{"no object": []any{1}, "metadata that is none": map[string]any{"metadata": "x"}, "no uid": map[string]any{"metadata": map[string]any{"name": "g"}}} {
		e.sent(&apitest.Reply{Code: 200, Body: body})
		if full, m, err := e.req.GetFull(t.Context(), gadget); err == nil || full != nil || m != nil {
			t.Errorf("%s: %v, %v", name, full, m)
		}
	}
}

// What was not sent, or what a webhook says about one object, tells nothing of the API: it must
// neither slow down a kind nor heal it.
func TestWhatAnErrorSaysAboutTheAPI(t *testing.T) {
	for name, c := range map[string]struct {
		err   error
		want  verdict
		after time.Duration
	}{
		"an answer":                      {nil, fine, 0},
		"a conflict":                     {apierrors.NewConflict(fixture.Pods, "a", errors.New("changed")), fine, 0},
		"not found":                      {apierrors.NewNotFound(fixture.Pods, "a"), fine, 0},
		"a webhook's 429":                {webhookSaysNo(429, metav1.StatusReasonTooManyRequests), fine, 0},
		"a 429 of the kind's storage":    {apierrors.NewTooManyRequests("busy", 7), throttledByKind, 7 * time.Second},
		"an internal error":              {apierrors.NewInternalError(errors.New("etcd")), unanswered, 0},
		"no connection":                  {errors.New("connection refused"), unanswered, 0},
		"no time":                        {context.DeadlineExceeded, unanswered, 0},
		"it was not sent: no contact":    {fmt.Errorf("delete: %w", follow.ErrNoContact), noVerdict, 0},
		"it was not sent: it is void":    {fmt.Errorf("delete: %w", follow.ErrRewound), noVerdict, 0},
		"it was ended, as this one ends": {context.Canceled, noVerdict, 0},
	} {
		if v, after := judge(fixture.Pods, c.err); v != c.want || after != c.after {
			t.Errorf("%s: verdict %d after %s, want %d after %s", name, v, after, c.want, c.after)
		}
	}
	if o := OutcomeOf(fmt.Errorf("delete: %w", follow.ErrRewound)); o != Stale {
		t.Errorf("what is void is %s: it is decided again", o)
	}
}

// What waits is told by kind, of those that fail: metrics and conditions of namespaces show it.
func TestAFailingKindSaysWhatHappensAndHowManyWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLimiter(64)
		for _, kind := range []schema.GroupResource{fixture.Pods, fixture.Gadgets} {
			if said := l.Failing(kind); said != "" || len(l.PutOffs()) != 0 {
				t.Errorf("%s at the beginning: %q, %v", kind, said, l.PutOffs())
			}
		}
		l.answered(t, fixture.Pods, like(fine, time.Millisecond))
		l.answered(t, fixture.Gadgets, answer{verdict: throttledByKind, retryAfter: time.Minute})
		for i := range 3 {
			l.PutOff(fixture.Gadgets, types.UID(fmt.Sprint(i%2))) // one of them twice
		}
		if diff := cmp.Diff(map[schema.GroupResource]int{fixture.Gadgets: 2}, l.PutOffs()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if said := l.Failing(fixture.Gadgets); said != "requests about gadgets.example.com are answered 429" || l.Failing(fixture.Pods) != "" {
			t.Errorf("%q, and of pods %q", said, l.Failing(fixture.Pods))
		}
	})
}

// A worker has others to do than to wait for a failing kind, a drainer has not. What was not sent
// is not counted as a DELETE.
func TestAWorkerDoesNotWaitForAFailingKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newAsking(t, nil)
		sent := e.sent(&apitest.Reply{Code: 200, Body: map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Success"}})
		l, began := e.req.Limiter, time.Now()
		l.answered(t, fixture.ConfigMaps, answer{verdict: throttledByKind, retryAfter: 2 * time.Second})
		if err := e.req.ForWorkers().Delete(t.Context(), configMap, "Background"); !IsBusy(err) || OutcomeOf(err) != Throttled || time.Since(began) > 0 || len(*sent) > 0 {
			t.Errorf("a worker: %v after %s, %d sent", err, time.Since(began), len(*sent))
		}
		if err := e.req.Delete(t.Context(), configMap, "Background"); err != nil || time.Since(began) != 2*time.Second || len(*sent) != 1 {
			t.Errorf("a drainer: %v after %s, %d sent", err, time.Since(began), len(*sent))
		}
		l.empty(t)
	})
}
