package collect

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"

	"github.com/weir-dev/weir/controller/events"
	"github.com/weir-dev/weir/controller/follow"
	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/metaonly"
	"github.com/weir-dev/weir/controller/request"
	"github.com/weir-dev/weir/internal/testkit/apitest"
	"github.com/weir-dev/weir/internal/testkit/fixture"
)

// edge is what collects, on an API server in memory: ConfigMaps, Secrets, and Gadgets, which have
// an API of their own, are followed into a graph, and workers do what it says.
type edge struct {
	*testing.T
	api    *apitest.Server
	config *rest.Config
	store  *follow.Store
	req    *request.Client
	work   *Workers
}

// newEdge prepares one. through, if there is one, stands between its requests and the API server.
func newEdge(t *testing.T, through func(http.RoundTripper) http.RoundTripper) *edge {
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
	registry := prometheus.NewRegistry()
	req, err := request.New(config, client, request.NewLimiter(request.DefaultConcurrency), &follow.History{}, registry)
	if err != nil {
		t.Fatal(err)
	}
	req.Serve(fixture.Kinds)
	e := &edge{T: t, api: api, config: config, store: follow.NewStore(), req: req}
	e.store.Apply(graph.Serving{Resources: fixture.Kinds})
	rep := events.New(&record.FakeRecorder{}, req.KindOf)
	e.work = New(Options{Store: e.store, Requester: req, Reporter: rep, Log: logr.Discard(), Registry: registry})
	return e
}

// run calls f in a bubble while what is in the API server is followed, and n workers work.
func (e *edge) run(n int, f func(ctx context.Context)) {
	e.Helper()
	ctx, stop := context.WithCancel(e.Context())
	h, err := rest.HTTPClientFor(e.api.Config())
	if err != nil {
		e.Fatal(err)
	}
	client, err := metaonly.New(e.api.Config(), h, h)
	if err != nil {
		e.Fatal(err)
	}
	w := follow.NewWatcher(nil, client, e.store, nil, logr.Discard(), prometheus.NewRegistry())
	w.Follow(ctx, fixture.Kinds)
	synctest.Wait()
	worked := make(chan struct{})
	go func() {
		e.work.Run(ctx, n)
		close(worked)
	}()
	f(ctx)
	stop()
	<-worked
	w.Wait()
}

// put makes an object with owners, each written KIND/NAME, whose uids are those that the API server
// gives.
func (e *edge) put(kind schema.GroupResource, name string, owners ...string) {
	e.Helper()
	apiVersion, singular := "v1", ""
	var refs []string
	for _, r := range fixture.Kinds {
		if r.GroupResource() == kind {
			apiVersion, singular = schema.GroupVersion{Group: r.Group, Version: r.Version}.String(), r.Kind
		}
	}
	for _, o := range owners {
		k, owner, _ := strings.Cut(o, "/")
		refs = append(refs, fmt.Sprintf("{apiVersion: v1, kind: %s, name: %s, uid: uid-%s}", k, owner, owner))
	}
	e.api.Put(kind.Resource,
		fmt.Sprintf("{apiVersion: %s, kind: %s, metadata: {name: %s, namespace: shop, ownerReferences: [%s]}}",
			apiVersion, singular, name, strings.Join(refs, ", ")))
}

// key is how the API server calls an object.
func key(kind schema.GroupResource, name string) string { return kind.String() + "/shop/" + name }

// there tells which of the objects are in the API server.
func (e *edge) there(kind schema.GroupResource, names ...string) (left []string) {
	for _, name := range names {
		if e.api.Get(key(kind, name)) != nil {
			left = append(left, name)
		}
	}
	return left
}
