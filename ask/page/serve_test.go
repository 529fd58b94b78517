package page

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/weir-dev/weir/ask/insight"
	"github.com/weir-dev/weir/ask/snapshot"
	"github.com/weir-dev/weir/internal/testkit/apitest"
)

// town is a page about a cluster with a namespace shop, an owner in it, and what that owns.
type town struct {
	*testing.T
	*Page
	api *apitest.Server
	// policiesDown has the API server answer no list of policies, in a town that has some.
	policiesDown *atomic.Bool
	// reads answers in place of the API server where it is set.
	reads func() (*unstructured.Unstructured, error)
}

func newTown(t *testing.T) *town {
	t.Helper()
	return newTownOf(t, discovered)
}

// newTownOf is one whose API server answers in another way.
func newTownOf(t *testing.T, answer func(apitest.Request) *apitest.Reply) *town {
	t.Helper()
	w := &town{T: t, api: apitest.New()}
	w.api.Intercept(answer)
	w.api.Put("namespaces", `{apiVersion: v1, kind: Namespace, metadata: {name: shop, uid: ns}}`)
	w.put("boss", "")
	w.put("leaf", "boss")
	w.put("twig", "leaf")
	w.put("lost", "never")
	follower := follow(t, w.api.Config(), "")
	t.Cleanup(follower.Close)
	var err error
	w.Page, err = Listen(Options{
		Cluster: "town", Follower: follower,
		Object: func(_ context.Context, _ schema.GroupVersionResource, namespace, name string) (*unstructured.Unstructured, error) {
			if w.reads != nil {
				return w.reads()
			}
			if o := w.api.Get("configmaps/" + namespace + "/" + name); o != nil {
				return &unstructured.Unstructured{Object: o}, nil
			}
			return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, name)
		},
		Facts: func(context.Context, *insight.World, schema.GroupVersionResource, *unstructured.Unstructured) insight.Facts {
			return insight.Facts{}
		},
		Policies: func(context.Context, *insight.World) (*snapshot.Policies, error) { return nil, nil },
		Guarded: func(context.Context, *insight.World) ([]unstructured.Unstructured, []corev1.Event) {
			return []unstructured.Unstructured{{Object: map[string]any{
					"metadata": map[string]any{"name": "widgets"}, "status": map[string]any{"objects": int64(7)},
				}}}, []corev1.Event{{
					Reason: "Kept", Message: "not today", Source: corev1.EventSource{Component: "weir"},
					InvolvedObject: corev1.ObjectReference{Kind: "ConfigMap", Namespace: "shop", Name: "leaf", UID: "leaf"},
				}}
		},
		Deleted: func(_ context.Context, namespace string) ([]DeletedTree, error) {
			if namespace == "none" {
				return nil, errors.New("the cluster keeps nothing")
			}
			return []DeletedTree{{Tree: "web-1", Object: "configmaps/shop/web", Recorded: "3 objects"}}, nil
		},
	}, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.listener.Close() })
	return w
}

// follow follows a namespace of a cluster, or all of it.
func follow(t *testing.T, config *rest.Config, namespace string) *snapshot.Follower {
	t.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	follower, err := (&snapshot.Reader{Config: config, Discovery: client}).Follow(t.Context(), namespace)
	if err != nil {
		t.Fatal(err)
	}
	return follower
}

// discovered answers what the cluster serves.
func discovered(r apitest.Request) *apitest.Reply {
	verbs := metav1.Verbs{"list", "watch", "get", "delete"}
	switch r.Path {
	case "/api":
		return &apitest.Reply{Code: 200, Body: metav1.APIVersions{Versions: []string{"v1"}}}
	case "/apis":
		return &apitest.Reply{Code: 200, Body: metav1.APIGroupList{}}
	case "/api/v1":
		return &apitest.Reply{Code: 200, Body: metav1.APIResourceList{GroupVersion: "v1", APIResources: []metav1.APIResource{
			{Name: "namespaces", Kind: "Namespace", Verbs: verbs}, {Name: "configmaps", Kind: "ConfigMap", Namespaced: true, Verbs: verbs},
		}}}
	}
	return nil
}

// put writes a ConfigMap; its uid is its name.
func (w *town) put(name, owner string) {
	owners := ""
	if owner != "" {
		owners = fmt.Sprintf(", ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: %s, uid: %s}]", owner, owner)
	}
	w.api.Put("configmaps", fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {namespace: shop, name: %s, uid: %s%s}}", name, name, owners))
}

// until waits until the page has seen what it is to see.
func (w *town) until(what string, seen func() bool) {
	w.Helper()
	late := time.After(time.Minute)
	for {
		_, further := w.Follower.Changed()
		if seen() {
			return
		}
		select {
		case <-further:
		case <-late:
			w.Fatalf("%s: not seen within a minute", what)
		}
	}
}

// untilNamed waits until the page has seen objects with these names.
func (w *town) untilNamed(names ...string) {
	w.Helper()
	for _, name := range names {
		w.until(name, func() bool { _, n := w.Follower.Search(name, 1); return n > 0 })
	}
}

// request is one as a browser sends it that has the page open.
func (w *town) request(path string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/"+w.token+path, nil)
	r.Host = w.listener.Addr().String()
	return r
}

func (w *town) send(r *http.Request) *httptest.ResponseRecorder {
	answer := httptest.NewRecorder()
	w.handler().ServeHTTP(answer, r)
	return answer
}

// ask asks a question, and decodes the answer, which must have this status.
func (w *town) ask(status int, question string, parameters ...string) map[string]any {
	w.Helper()
	q := url.Values{}
	for i := 0; i < len(parameters); i += 2 {
		q.Set(parameters[i], parameters[i+1])
	}
	answer := w.send(w.request("/api/" + question + "?" + q.Encode()))
	if answer.Code != status {
		w.Fatalf("%s %v: %d, want %d: %s", question, parameters, answer.Code, status, answer.Body)
	}
	said := map[string]any{}
	if answer.Body.Len() > 0 {
		if err := json.Unmarshal(answer.Body.Bytes(), &said); err != nil {
			w.Fatalf("%s: %v: %s", question, err, answer.Body)
		}
	}
	return said
}

var boss = []string{"kind", "configmaps", "namespace", "shop", "name", "boss"}

// TestWhoMayAsk: who has the address may, and no other page of the same browser, be it one that has
// a name of its own for this machine.
func TestWhoMayAsk(t *testing.T) {
	w := newTown(t)
	_, port, _ := strings.Cut(w.listener.Addr().String(), ":")
	for name, c := range map[string]struct {
		change func(*http.Request)
		status int
	}{
		"the page":                 {func(*http.Request) {}, http.StatusOK},
		"the page by another name": {func(r *http.Request) { r.Host = "localhost:" + port }, http.StatusOK},
		"the page's own request": {func(r *http.Request) {
			r.Header.Set("Origin", "http://"+r.Host)
			r.Header.Set("Sec-Fetch-Site", "same-origin")
		}, http.StatusOK},
		"typed": {func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "none") }, http.StatusOK},
		"a link in a mail": {func(r *http.Request) {
			r.Header.Set("Sec-Fetch-Site", "cross-site")
			r.Header.Set("Sec-Fetch-Dest", "document")
		}, http.StatusOK},
		"a name that leads here":           {func(r *http.Request) { r.Host = "example.com:" + port }, http.StatusMisdirectedRequest},
		"no port":                          {func(r *http.Request) { r.Host = "127.0.0.1" }, http.StatusMisdirectedRequest},
		"another port":                     {func(r *http.Request) { r.Host = "127.0.0.1:1" }, http.StatusMisdirectedRequest},
		"no name":                          {func(r *http.Request) { r.Host = "" }, http.StatusMisdirectedRequest},
		"another page":                     {func(r *http.Request) { r.Header.Set("Origin", "http://example.com") }, http.StatusForbidden},
		"another page of this machine":     {func(r *http.Request) { r.Header.Set("Origin", "http://127.0.0.1:1") }, http.StatusForbidden},
		"a page without an origin":         {func(r *http.Request) { r.Header.Set("Origin", "null") }, http.StatusForbidden},
		"another page's script or picture": {func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, http.StatusForbidden},
		"another port's script":            {func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") }, http.StatusForbidden},
		"a frame": {func(r *http.Request) {
			r.Header.Set("Sec-Fetch-Site", "cross-site")
			r.Header.Set("Sec-Fetch-Dest", "iframe")
		}, http.StatusForbidden},
		"without the token":      {func(r *http.Request) { r.URL.Path = "/api/state" }, http.StatusForbidden},
		"with another token":     {func(r *http.Request) { r.URL.Path = "/" + strings.Repeat("A", len(w.token)) + "/api/state" }, http.StatusForbidden},
		"with part of the token": {func(r *http.Request) { r.URL.Path = "/" + w.token[1:] + "/api/state" }, http.StatusForbidden},
		"something else":         {func(r *http.Request) { r.URL.Path += "/x" }, http.StatusNotFound},
		"to change something":    {func(r *http.Request) { r.Method = http.MethodPost }, http.StatusMethodNotAllowed},
		"to delete something":    {func(r *http.Request) { r.Method = http.MethodDelete }, http.StatusMethodNotAllowed},
	} {
		r := w.request("/api/state")
		c.change(r)
		answer := w.send(r)
		if answer.Code != c.status || (answer.Code == http.StatusOK) != strings.Contains(answer.Body.String(), "town") {
			t.Errorf("%s: %d, want %d: %s", name, answer.Code, c.status, answer.Body)
		}
		for header, has := range map[string]string{
			"Content-Security-Policy": "default-src 'none'", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
			"Cross-Origin-Resource-Policy": "same-origin", "Cache-Control": "no-store",
		} {
			if !strings.Contains(answer.Header().Get(header), has) {
				t.Errorf("%s: %s is %q, want %s", name, header, answer.Header().Get(header), has)
			}
		}
	}
}

// TestFilesOfThePage: they are under the token, with their types, and no path leads out of them.
func TestFilesOfThePage(t *testing.T) {
	w := newTown(t)
	for path, want := range map[string]string{
		"/": "text/html; charset=utf-8", "/assets/page.js": "text/javascript; charset=utf-8", "/assets/icon.svg": "image/svg+xml",
		"/assets/../../page.go": "", "/assets/": "", "/assets/none.js": "", "/assets/../page_test.go": "", "/page.js": "",
	} {
		r := w.request("/")
		r.URL.Path = "/" + w.token + path
		answer := w.send(r)
		if want == "" && answer.Code != http.StatusNotFound || want != "" && (answer.Code != http.StatusOK || answer.Header().Get("Content-Type") != want) {
			t.Errorf("%s: %d %s, want %q: %.40s", path, answer.Code, answer.Header().Get("Content-Type"), want, answer.Body)
		}
	}
}

// TestQuestions: what each answers, and how one that cannot be answered fails.
func TestQuestions(t *testing.T) {
	w := newTown(t)
	for _, c := range []struct {
		status     int
		question   string
		parameters []string
		has        []string
	}{
		{200, "search", []string{"q", "ea"}, []string{`"total":1`, `"leaf"`}},
		{200, "state", nil, []string{`"cluster":"town"`, `"kind":"configmaps","objects":4`}},
		{400, "search", nil, []string{"q: must be a part of a name"}},
		{400, "search", []string{"q", strings.Repeat("a", 254)}, []string{"q: must be"}},
		{200, "object", boss, []string{`"uid":"boss"`, `"why":`, `"owners":`}},
		{400, "object", nil, []string{"name an object"}},
		{400, "object", []string{"kind", "widgets", "name", "x"}, []string{"widgets"}},
		{404, "object", []string{"kind", "configmaps", "namespace", "shop", "name", "none"}, []string{"none"}},
		{404, "object", []string{"kind", "configmaps", "namespace", "elsewhere", "name", "boss"}, []string{"boss"}},
		{200, "plan", append([]string{"cascade", "background"}, boss...), []string{`"summary":"Plan: 3 objects are deleted`}},
		{200, "plan", append([]string{"cascade", "orphan"}, boss...), []string{`"summary":"Plan: 1 object is deleted`}},
		{400, "plan", append([]string{"cascade", "sideways"}, boss...), []string{"cascade: must be"}},
		{400, "plan", []string{"cascade", "background"}, []string{"name an object"}},
		{410, "lines", []string{"plan", "none"}, []string{"ask for a new one"}},
		{200, "guarded", nil, []string{`"name":"widgets"`, `"objects":7`, `"on":"ConfigMap shop/leaf"`, `"kind":"configmaps"`, `"message":"not today"`, `"total":1`}},
		{200, "deleted", nil, []string{`"tree":"web-1"`, `"object":"configmaps/shop/web"`, `"total":1`}},
		{502, "deleted", []string{"namespace", "none"}, []string{"the cluster keeps nothing"}},
		{200, "pending", nil, []string{`"groups":[]`}},
		{200, "orphans", []string{"namespace", "shop"}, []string{`"fate":"delete"`, `"lost"`, `"total":1`}},
	} {
		said := w.ask(c.status, c.question, c.parameters...)
		text, err := json.Marshal(said)
		if err != nil {
			t.Fatal(err)
		}
		for _, has := range c.has {
			if !strings.Contains(string(text), has) {
				t.Errorf("%s %q has no %s: %s", c.question, c.parameters, has, text)
			}
		}
		if failed, _ := said["error"].(string); (failed != "") != (c.status != http.StatusOK) {
			t.Errorf("%s %q: %d, and the error is %q", c.question, c.parameters, c.status, failed)
		}
	}
}

// TestWhatIsKnownIsNotSentAgain: who has the answer is told so, until something changes that it
// rests on.
func TestWhatIsKnownIsNotSentAgain(t *testing.T) {
	w := newTown(t)
	for _, question := range [][]string{append([]string{"object"}, boss...), {"pending", "namespace", "shop"}, {"orphans"}} {
		have := func() []string {
			version, _ := w.ask(200, question[0], question[1:]...)["version"].(float64)
			return append([]string{"have", fmt.Sprint(int64(version))}, question[1:]...)
		}()
		w.ask(http.StatusNoContent, question[0], have...)
		before := w.Follower.Version("shop")
		w.put("new-"+question[0], "twig")
		w.until("a new object", func() bool { return w.Follower.Version("shop") > before })
		w.ask(200, question[0], have...)
	}
}

// TestObjectThatCannotBeRead: what metadata says is told all the same, and of one that is not the
// same any more nothing is.
func TestObjectThatCannotBeRead(t *testing.T) {
	w := newTown(t)
	w.reads = func() (*unstructured.Unstructured, error) { return nil, errors.New("you may not read it") }
	if said := w.ask(200, "object", boss...); said["notRead"] != "you may not read it" || said["why"] == nil {
		t.Errorf("%v", said)
	}
	w.reads = func() (*unstructured.Unstructured, error) {
		return &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"uid": "another"}}}, nil
	}
	w.ask(http.StatusNotFound, "object", boss...)
	w.reads = func() (*unstructured.Unstructured, error) {
		return nil, apierrors.NewNotFound(schema.GroupResource{}, "boss")
	}
	w.ask(http.StatusNotFound, "object", boss...)
	w.Policies = func(context.Context, *insight.World) (*snapshot.Policies, error) {
		return nil, errors.New("no policies today")
	}
	if said := w.ask(http.StatusBadGateway, "plan", append([]string{"cascade", "background"}, boss...)...); said["error"] != "no policies today" {
		t.Errorf("%v", said)
	}
}

// TestPlansAreKept: the last ones, for their lines to be asked for; the same question has the same
// plan for as long as nothing changes.
func TestPlansAreKept(t *testing.T) {
	w := newTown(t)
	plan := func(name, cascade, have string) (id string) {
		status := http.StatusOK
		if have != "" {
			status = http.StatusNoContent
		}
		id, _ = w.ask(status, "plan", "kind", "configmaps", "namespace", "shop", "name", name, "cascade", cascade, "have", have)["id"].(string)
		return id
	}
	first := plan("boss", "background", "")
	if again := plan("boss", "background", ""); first == "" || again != first {
		t.Errorf("the plan is made again: %q, then %q", first, again)
	}
	plan("boss", "background", first)
	lines, _ := w.ask(200, "lines", "plan", first, "below", "0", "from", "0")["lines"].([]any)
	if len(lines) != 1 || !strings.Contains(fmt.Sprint(lines), "leaf") {
		t.Errorf("below the first line: %v", lines)
	}
	w.ask(http.StatusBadRequest, "lines", "plan", first, "below", "zero", "from", "0")
	w.ask(200, "lines", "plan", first, "below", "-1", "from", "99999999")
	w.ask(200, "lines", "plan", first, "below", "0", "from", "0")

	before := w.Follower.Version("shop")
	w.put("new", "twig")
	w.until("a new object", func() bool { return w.Follower.Version("shop") > before })
	second := plan("boss", "background", "")
	if second == first {
		t.Error("the plan is the same, and the tree is not")
	}
	w.ask(http.StatusGone, "lines", "plan", first, "below", "0", "from", "0") // another of the same question has its place
	for _, name := range []string{"leaf", "twig", "new"} {
		plan(name, "orphan", "")
		w.ask(200, "lines", "plan", second, "below", "0", "from", "0")
	}
	plan("lost", "foreground", "") // one more than are kept
	w.ask(http.StatusGone, "lines", "plan", second, "below", "0", "from", "0")
	if len(w.plans) != mostPlans {
		t.Errorf("%d plans are kept, want %d", len(w.plans), mostPlans)
	}
}

// TestQuestionsWaitForTheirTurn: no more are answered at once than may be, and one whose asker has
// gone takes no turn.
func TestQuestionsWaitForTheirTurn(t *testing.T) {
	w := newTown(t)
	for range atOnce {
		if _, err := w.enter(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	for _, path := range []string{"/api/pending", "/api/orphans", "/api/object?kind=configmaps&namespace=shop&name=boss", "/api/plan?cascade=orphan&kind=configmaps&namespace=shop&name=boss"} {
		if answer := w.send(w.request(path).WithContext(gone)); answer.Code != http.StatusBadGateway {
			t.Errorf("%s: %d %s", path, answer.Code, answer.Body)
		}
	}
	answered := make(chan int)
	go func() { answered <- w.send(w.request("/api/pending")).Code }()
	<-w.asking // one is answered
	if code := <-answered; code != http.StatusOK {
		t.Errorf("%d", code)
	}
}

// TestChangesAreToldAsTheyCome: a page that is open hears of each change, as many pages may be open
// as there is room for, and all of them end with the server.
func TestChangesAreToldAsTheyCome(t *testing.T) {
	w := newTown(t)
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- w.Serve(ctx) }()
	answer, err := http.Get(w.URL() + "api/events")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK || answer.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%s %s", answer.Status, answer.Header.Get("Content-Type"))
	}
	lines := bufio.NewScanner(answer.Body)
	heard := func() (version int64) {
		for lines.Scan() {
			if data, is := strings.CutPrefix(lines.Text(), "data: "); is {
				var said struct{ Version, Beat int64 }
				if err := json.Unmarshal([]byte(data), &said); err != nil || said.Beat == 0 {
					t.Fatalf("%s: %v", data, err)
				}
				return said.Version
			}
		}
		t.Fatalf("it ended: %v", lines.Err())
		return 0
	}
	heard()
	before := w.Follower.Version("")
	w.put("new", "twig")
	for heard() <= before {
	}

	for range mostStreams - 1 {
		w.streams <- struct{}{}
	}
	if refused := w.send(w.request("/api/events")); refused.Code != http.StatusTooManyRequests {
		t.Errorf("one more than may be open: %d", refused.Code)
	}
	stop()
	if err := <-served; err != nil {
		t.Errorf("serve: %v", err)
	}
	for lines.Scan() {
	}
	if conn, err := net.Dial("tcp", w.listener.Addr().String()); err == nil {
		_ = conn.Close()
		t.Error("it still listens")
	}
}
