package follow

import (
	"context"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/weir-dev/weir/controller/await"
	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/metaonly"
	"github.com/weir-dev/weir/internal/testkit/apitest"
	"github.com/weir-dev/weir/internal/testkit/fixture"
)

// watching is what watches a cluster, on an API server in memory.
type watching struct {
	*testing.T
	api      *apitest.Server
	store    *Store
	history  *History
	watcher  *Watcher
	rewound  []string // why, each time
	registry *prometheus.Registry

	mu     sync.Mutex
	served map[string]string // resource.group: kind and version, as "ConfigMap v1"
	faults func(apitest.Request) *apitest.Reply
	lists  map[string]int // whole lists, by resource
	// alter changes what is sent.
	alter func(*http.Request)
	// hang tells which requests wait until the API server gives them up, by their path; nil: none
	// does.
	hang func(path string) bool
	// later adds to each 429 when to come again.
	later bool
	// transport is what sends all requests.
	transport http.RoundTripper
	// page stands before each page of a list but the first, if it is not nil.
	page func(resource string, r *http.Request, next http.RoundTripper) (*http.Response, error)
}

// newWatching serves namespaces, ConfigMaps, and a custom kind. It is run by start.
func newWatching(t *testing.T) *watching {
	t.Helper()
	e := &watching{T: t, api: apitest.New(), store: NewStore(), lists: map[string]int{},
		registry: prometheus.NewRegistry(),
		served: map[string]string{"namespaces": "Namespace v1", "configmaps": "ConfigMap v1",
			"widgets.example.com": "Widget v1"}}
	e.api.Intercept(e.answer)
	e.api.Put("namespaces", "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}")
	config := e.api.Config()
	next := config.Transport
	config.Transport = sending(func(r *http.Request) (*http.Response, error) {
		if e.alter != nil {
			r = r.Clone(r.Context())
			e.alter(r)
		}
		if e.hang != nil && e.hang(r.URL.Path) {
			select {
			case <-time.After(time.Minute):
				return fixture.Reply(r, http.StatusGatewayTimeout, "", "the backend does not answer"), nil
			case <-r.Context().Done():
				return nil, r.Context().Err()
			}
		}
		if e.page != nil && r.URL.Query().Get("continue") != "" {
			return e.page(path.Base(r.URL.Path), r, next)
		}
		resp, err := next.RoundTrip(r)
		if err == nil && resp.StatusCode == http.StatusTooManyRequests && e.later {
			resp.Header.Set("Retry-After", "5")
		}
		return resp, err
	})
	e.transport = config.Transport
	disco, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	meta, err := metaonly.New(config, client, client)
	if err != nil {
		t.Fatal(err)
	}
	e.watcher = NewWatcher(disco, meta, e.store, sets.New[schema.GroupResource](), logr.Discard(), e.registry)
	e.history = e.watcher.History
	e.watcher.Listen(Listener{Rewound: func(why string) {
		e.mu.Lock()
		e.rewound = append(e.rewound, why)
		e.mu.Unlock()
	}})
	return e
}

// ask makes discovery run soon.
func (w *Watcher) ask() { await.Wake(w.poke) }

type sending func(*http.Request) (*http.Response, error)

func (f sending) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// start runs it until the test ends; all of its goroutines must have ended then.
func (e *watching) start() {
	ctx, cancel := context.WithCancel(e.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		e.watcher.Run(ctx)
	}()
	e.Cleanup(func() {
		cancel()
		<-done
	})
}

// answer is discovery, and what a test breaks.
func (e *watching) answer(r apitest.Request) *apitest.Reply {
	e.mu.Lock()
	faults := e.faults
	resource := r.Path[strings.LastIndex(r.Path, "/")+1:]
	switch {
	case strings.Contains(r.Query, "continue="):
	case strings.Contains(r.Query, "limit=1&") || strings.HasSuffix(r.Query, "limit=1"):
	case !strings.Contains(r.Query, "watch=true"):
		e.lists[resource]++
	}
	e.mu.Unlock()
	if faults != nil {
		if reply := faults(r); reply != nil {
			return reply
		}
	}
	if strings.HasPrefix(r.Path, "/apis/apiregistration.k8s.io") {
		service := ""
		if strings.HasSuffix(r.Path, "v1.aggregated.example.com") {
			service = `"service": {"name": "x"}`
		}
		return &apitest.Reply{Code: 200, Body: raw(`{"spec": {` + service + `}}`)}
	}
	return e.discovery(r.Path)
}

type raw string

func (r raw) MarshalJSON() ([]byte, error) { return []byte(r), nil }

func (e *watching) discovery(path string) *apitest.Reply {
	e.mu.Lock()
	defer e.mu.Unlock()
	groups, lists := map[string]string{}, map[string][]string{}
	for name, what := range e.served {
		resource, group, _ := strings.Cut(name, ".")
		kind, version, _ := strings.Cut(what, " ")
		at := "/api/" + version
		if group != "" {
			at = "/apis/" + group + "/" + version
			groups[group] = fmt.Sprintf(`{"name": %q, "versions": [{"groupVersion": "%s/%s", "version": %q}], "preferredVersion": {"groupVersion": "%s/%s", "version": %q}}`,
				group, group, version, version, group, version, version)
		}
		lists[at] = append(lists[at],
			fmt.Sprintf(`{"name": %q, "kind": %q, "namespaced": %t, "verbs": ["list", "watch", "delete"]}`,
				resource, kind, resource != "namespaces"))
	}
	switch {
	case path == "/api":
		return &apitest.Reply{Code: 200, Body: raw(`{"kind": "APIVersions", "versions": ["v1"]}`)}
	case path == "/apis":
		var all []string
		for _, g := range groups {
			all = append(all, g)
		}
		return &apitest.Reply{Code: 200, Body: raw(`{"kind": "APIGroupList", "apiVersion": "v1", "groups": [` +
			strings.Join(all, ",") + `]}`)}
	case lists[path] != nil:
		gv := strings.TrimPrefix(strings.TrimPrefix(path, "/apis/"), "/api/")
		return &apitest.Reply{Code: 200, Body: raw(`{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "` + gv +
			`", "resources": [` + strings.Join(lists[path], ",") + `]}`)}
	}
	return nil
}

// serve changes what discovery says of a resource; "" takes it away.
func (e *watching) serve(resource, what string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.served, resource)
	if what != "" {
		e.served[resource] = what
	}
}

// fail lets f answer first; nil repairs.
func (e *watching) fail(f func(apitest.Request) *apitest.Reply) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.faults = f
}

func (e *watching) configMap(name, metadata string) {
	e.api.Put("configmaps", fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: shop%s}}",
		name, metadata))
}

// pass lets time go by.
func (e *watching) pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// kind is how far a kind has come.
func (e *watching) kind(resource string) graph.KindStats {
	e.Helper()
	for _, k := range e.store.Stats().Kinds {
		if k.GroupResource().String() == resource {
			return k
		}
	}
	return graph.KindStats{}
}

// behind is why a kind is; "" if it is not.
func (e *watching) behind(resource string) string {
	e.Helper()
	if k := e.kind(resource); k.State == graph.Behind {
		return k.Reason
	}
	return ""
}

// until lets time go by until something holds, at most for a time, and returns how long that took.
func (e *watching) until(most time.Duration, what string, holds func() bool) time.Duration {
	e.Helper()
	began := time.Now()
	for synctest.Wait(); !holds(); e.pass(50 * time.Millisecond) {
		if time.Since(began) > most {
			e.Fatalf("%s: not within %s; %+v", what, most, e.store.Stats().Kinds)
		}
	}
	return time.Since(began)
}

func (e *watching) untilState(most time.Duration, resource string, s graph.ListState) time.Duration {
	e.Helper()
	return e.until(most, resource+" is "+s.String(), func() bool { return e.kind(resource).State == s })
}

// whole starts it, and returns when all kinds are listed.
func (e *watching) whole() {
	e.Helper()
	e.start()
	for _, resource := range []string{"namespaces", "configmaps", "widgets.example.com"} {
		e.untilState(5*time.Second, resource, graph.Synced)
	}
	e.pass(2 * time.Second) // a watch that ends sooner is not taken up again: the reflector lists
}

func (e *watching) listsOf(resource string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.lists[resource]
}

// back is why the history went back, each time.
func (e *watching) back() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.rewound)
}

// TestDiscoveryEnds on an API server that does not answer, and is made again.
func TestDiscoveryEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := &rest.Config{Host: "http://api.test", Transport: fixture.Tripper(fixture.Hang)}
		client, err := rest.HTTPClientFor(config)
		if err != nil {
			t.Fatal(err)
		}
		w, err := New(config, client, NewStore(), nil, logr.Discard(), prometheus.NewRegistry())
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if _, err := w.discovery.ServerGroups(); err == nil || time.Since(began) > 2*discoveryTimeout {
			t.Errorf("%v after %s", err, time.Since(began))
		}
	})
}
