package request

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/weir-dev/weir/controller/follow"
	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/metaonly"
)

// Timeout bounds each request. The API server itself gives up on a single DELETE after 34 s
// (RB 6.18).
const Timeout = 40 * time.Second

// DefaultConcurrency bounds the requests under way at once. The API server's limits and 429s decide
// how much of it is used.
const DefaultConcurrency = 64

// Client makes requests with preconditions, within the limiter's bound.
type Client struct {
	client  *rest.RESTClient
	lists   *metaonly.Client
	Limiter *Limiter
	History *follow.History
	metrics *metrics
	// impatient: do not wait for failing kinds; see Limiter.acquire.
	impatient bool
	// kinds holds the kind of each resource, and the version in which it is written.
	kinds *atomic.Pointer[map[schema.GroupResource]schema.GroupVersionKind]
}

// New returns a Client that sends by httpClient, within the limits of l, and only while h allows
// it.
func New(
	config *rest.Config, httpClient *http.Client, l *Limiter, h *follow.History, reg prometheus.Registerer,
) (*Client, error) {
	c := metadata.ConfigFor(config)
	c.GroupVersion = &schema.GroupVersion{}
	c.APIPath = "/"
	c.QPS, c.Burst, c.RateLimiter = -1, 0, nil // the limiter adapts instead
	client, err := rest.RESTClientForConfigAndClient(c, httpClient)
	if err != nil {
		return nil, fmt.Errorf("make a client for requests: %w", err)
	}
	lists, err := metaonly.New(config, httpClient, httpClient)
	if err != nil {
		return nil, err
	}
	return &Client{client: client, lists: lists, Limiter: l, History: h, metrics: newMetrics(reg),
		kinds: &atomic.Pointer[map[schema.GroupResource]schema.GroupVersionKind]{}}, nil
}

// ForWorkers returns a copy for workers, which have other work than to wait for a failing kind.
func (r *Client) ForWorkers() *Client {
	w := *r
	w.impatient = true
	return &w
}

// Serve sets the resources that the cluster serves.
func (r *Client) Serve(resources []graph.Resource) {
	kinds := make(map[schema.GroupResource]schema.GroupVersionKind, len(resources))
	for _, res := range resources {
		kinds[res.GroupResource()] = schema.GroupVersionKind{Group: res.Group, Version: res.Version, Kind: res.Kind}
	}
	r.kinds.Store(&kinds)
	r.Limiter.forget(func(kind schema.GroupResource) bool { _, ok := kinds[kind]; return ok })
}

// KindOf returns the kind of a resource, in the version in which it is written; the zero value if
// it is not served.
func (r *Client) KindOf(gr schema.GroupResource) schema.GroupVersionKind {
	if m := r.kinds.Load(); m != nil {
		return (*m)[gr]
	}
	return schema.GroupVersionKind{}
}

func (r *Client) versionOf(gr schema.GroupResource) (schema.GroupVersion, error) {
	gvk := r.KindOf(gr)
	if gvk.Version == "" {
		return schema.GroupVersion{}, fmt.Errorf("the cluster does not serve %s now", gr)
	}
	return gvk.GroupVersion(), nil
}

// object addresses a request to one object.
func object(req *rest.Request, gv schema.GroupVersion, resource, namespace, name string) *rest.Request {
	return metaonly.At(req, gv.WithResource(resource), namespace).Name(name)
}

// do sends a request about a kind when there is a place for it.
func (r *Client) do(
	ctx context.Context, verb string, kind schema.GroupResource, req *rest.Request,
) (result rest.Result, err error) {
	err = r.Send(ctx, verb, kind, func(ctx context.Context) error {
		result = req.Do(ctx)
		return result.Error()
	})
	return result, err
}

// Send calls request, which may use another client, when there is a place for the kind.
func (r *Client) Send(
	ctx context.Context, verb string, kind schema.GroupResource, request func(context.Context) error,
) error {
	ctx, err := r.History.Enter(ctx)
	if err != nil {
		return err
	}
	place, err := r.Limiter.acquire(ctx, kind, !r.impatient)
	if err != nil {
		return err
	}
	usual := isLong
	if verb == "list" {
		usual = longIsLong
	}
	late := time.AfterFunc(usual, func() { r.Limiter.isLate(place) })
	within, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	began := time.Now()
	err = request(within)
	latency := time.Since(began)
	late.Stop()
	err = failure(ctx, err)
	v, retryAfter := judge(kind, err)
	r.Limiter.release(place, v, latency, retryAfter)
	r.metrics.request(verb, err, latency)
	return err
}

// doForMetadata sends a request and returns the metadata of the object in the answer. That may be a
// whole object in JSON, from an API that knows no partial objects. An answer without a uid is an
// error, because it does not say which object it is about.
func (r *Client) doForMetadata(
	ctx context.Context, verb string, kind schema.GroupResource, req *rest.Request,
) (*metav1.PartialObjectMetadata, error) {
	result, err := r.do(ctx, verb, kind, req.SetHeader("Accept", metaonly.Accept))
	if err != nil {
		return nil, err
	}
	obj, err := result.Get()
	m, ok := obj.(*metav1.PartialObjectMetadata)
	switch {
	case runtime.IsNotRegisteredError(err):
		m = &metav1.PartialObjectMetadata{}
		var raw []byte
		if raw, err = result.Raw(); err == nil {
			err = json.Unmarshal(raw, m)
		}
	case err == nil && !ok:
		err = fmt.Errorf("metadata expected, not %T", obj)
	}
	if err != nil {
		return nil, fmt.Errorf("decode the answer: %w", err)
	}
	if m.UID == "" {
		return nil, errors.New("decode the answer: it has no uid")
	}
	return m, nil
}

// Unretried returns a transport that removes Retry-After from answers. It is for clients that
// cannot be told not to retry, as client-go's do after that header: they would hold their place
// while they wait, and hide the 429 from the Limiter.
func Unretried(rt http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		resp, err := rt.RoundTrip(r)
		if err == nil {
			resp.Header.Del("Retry-After")
		}
		return resp, err
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
