package controller

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/weir-dev/weir/controller/follow"
	"github.com/weir-dev/weir/controller/kinds"
	"github.com/weir-dev/weir/controller/request"
	"github.com/weir-dev/weir/policies"
	"github.com/weir-dev/weir/policies/live"
)

// Following keeps the ownership graph of one cluster: all that a webhook needs.
type Following struct {
	options   Options
	store     *follow.Store
	watcher   *follow.Watcher
	requester *request.Client
	limiter   *request.Limiter
	clients   clients
}

// clients are the clients of the API server.
type clients struct {
	clock  *live.Clock  // the API server's
	config *rest.Config // for requests without a timeout
	client *http.Client // for config
	// bounded has a timeout for each request. Requests of requester have deadlines of their own.
	bounded       *rest.Config
	boundedClient *http.Client
	// open and guarded are made of these. Writes of guarded pass only while the API server's history
	// is known to go on.
	open, guarded kubernetes.Interface
}

func newClients(of *rest.Config, shadow bool) (c clients, err error) {
	c.config = rest.CopyConfig(of)
	c.config.QPS, c.config.Burst = -1, 0 // requests adapt (Limiter); watches and discovery are few
	c.clock = &live.Clock{}
	c.config.Wrap(c.clock.Wrap)
	if shadow {
		c.config.Wrap(func(next http.RoundTripper) http.RoundTripper { return readOnly{next} })
	}
	if c.client, err = rest.HTTPClientFor(c.config); err != nil {
		return c, err
	}
	c.bounded = rest.CopyConfig(c.config)
	c.bounded.Timeout = request.Timeout
	c.boundedClient, err = rest.HTTPClientFor(c.bounded)
	return c, err
}

// readOnly refuses every request that could change anything. So the promise of shadow mode does not
// rest on the parts alone.
type readOnly struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (r readOnly) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method != http.MethodGet && req.Method != http.MethodHead {
		if req.Body != nil {
			_ = req.Body.Close() // as the interface asks for
		}
		return nil, fmt.Errorf("%s %s: shadow mode changes nothing", req.Method, req.URL.Path)
	}
	return r.next.RoundTrip(req)
}

// NewFollowing returns a Following. It sends nothing to the API server before Follow.
func NewFollowing(o Options) (*Following, error) {
	if o.Config == nil {
		return nil, errors.New("follow a cluster: no API server is configured")
	}
	if o.Registry == nil {
		o.Registry = prometheus.NewRegistry()
	}
	f := &Following{options: o, store: follow.NewStore(), limiter: request.NewLimiter(request.DefaultConcurrency)}
	var err error
	if f.clients, err = newClients(o.Config, o.Shadow); err != nil {
		return nil, fmt.Errorf("follow a cluster: %w", err)
	}
	ignored := kinds.Ignored.Union(sets.New(o.Ignored...))
	f.watcher, err = follow.New(f.clients.config, f.clients.client, f.store, ignored, o.Log, o.Registry)
	if err != nil {
		return nil, err
	}
	f.requester, err = request.New(f.clients.config, f.guarded(f.clients.client), f.limiter, f.watcher.History, o.Registry)
	if err != nil {
		return nil, err
	}
	if f.clients.open, err = kubernetes.NewForConfigAndClient(f.clients.bounded, f.clients.boundedClient); err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	f.clients.guarded, err = kubernetes.NewForConfigAndClient(f.clients.bounded, f.guarded(f.clients.boundedClient))
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	if o.Policies != nil {
		f.watcher.Listen(follow.Listener{Rewound: o.Policies.Rewound})
	}
	f.watcher.Listen(follow.Listener{Served: f.requester.Serve})
	if err := o.Registry.Register(follow.NewGraphMetrics(f.store, f.watcher.Follows)); err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	return f, nil
}

// guarded returns a client whose writes pass only while the API server's history is known to go on.
func (f *Following) guarded(client *http.Client) *http.Client {
	return &http.Client{Transport: f.watcher.History.Guard(client.Transport), Timeout: client.Timeout}
}

// Follow watches the cluster until ctx ends. Every replica does.
func (f *Following) Follow(ctx context.Context) error {
	f.watcher.Run(ctx)
	return nil
}

// FollowKinds watches which kinds the cluster serves, and becomes Follow when all is closed. Until
// then Facts says of all objects that they are not known.
func (f *Following) FollowKinds(ctx context.Context, all <-chan struct{}) error {
	f.watcher.RunKinds(ctx, all)
	return nil
}

// Ready returns why the graph is not complete yet. It returns nil once every kind has been listed,
// or has failed to be, which is reported elsewhere.
func (f *Following) Ready() error { return f.watcher.Ready() }

// KindsReady returns why the served kinds are not known yet.
func (f *Following) KindsReady() error { return f.watcher.KindsReady() }

// Facts returns what the graph and discovery know, for policies. Each call reads the graph as it is
// then, and holds up events meanwhile. Follow must be running.
func (f *Following) Facts() policies.Facts { return f.watcher.Facts() }
