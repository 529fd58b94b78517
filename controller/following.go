package controller

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/weir-dev/weir/controller/brake"
	"github.com/weir-dev/weir/controller/follow"
	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/kinds"
	"github.com/weir-dev/weir/controller/request"
	"github.com/weir-dev/weir/controller/requested"
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
	requests  *requested.Record
	clients   clients
}

// clients are how the API server is asked.
type clients struct {
	clock  *live.Clock  // of the API server
	config *rest.Config // for what may wait for as long as it likes
	client *http.Client // for that
	// bounded ends each request, but those of requester, which have deadlines of their own.
	bounded       *rest.Config
	boundedClient *http.Client
	// open and guarded are made of these. Writes by the latter pass only while the history of the
	// API server is known to go on.
	open, guarded kubernetes.Interface
}

func newClients(of *rest.Config, shadow bool) (c clients, err error) {
	c.config = rest.CopyConfig(of)
	c.config.QPS, c.config.Burst = -1, 0 // requests adapt (limiter); watches and discovery are few
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

// readOnly sends nothing that could change anything, whoever asks for it: what shadow mode promises
// does not rest on the parts alone.
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

// NewFollowing prepares to follow. Nothing is sent to the API server before Follow.
func NewFollowing(o Options) (*Following, error) {
	if o.Config == nil {
		return nil, errors.New("follow a cluster: no API server is configured")
	}
	if o.Registry == nil {
		o.Registry = prometheus.NewRegistry()
	}
	f := &Following{options: o, store: follow.NewStore(), limiter: request.NewLimiter(request.DefaultConcurrency)}
	f.requests = requested.New(f.store.Find)
	var err error
	if f.clients, err = newClients(o.Config, o.Shadow); err != nil {
		return nil, fmt.Errorf("follow a cluster: %w", err)
	}
	if f.watcher, err = follow.New(f.clients.config, f.clients.client, f.store, kinds.Ignored.Union(sets.New(o.Ignored...)), o.Log, o.Registry); err != nil {
		return nil, err
	}
	if f.requester, err = request.New(f.clients.config, f.guarded(f.clients.client), f.limiter, f.watcher.History, o.Registry); err != nil {
		return nil, err
	}
	if f.clients.open, err = kubernetes.NewForConfigAndClient(f.clients.bounded, f.clients.boundedClient); err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	f.clients.guarded, err = kubernetes.NewForConfigAndClient(f.clients.bounded, f.guarded(f.clients.boundedClient))
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	f.listen()
	for _, m := range []prometheus.Collector{follow.NewGraphMetrics(f.store, f.watcher.Follows), follow.NewEndingMetrics(f.store)} {
		if err := o.Registry.Register(m); err != nil {
			return nil, fmt.Errorf("register metrics: %w", err)
		}
	}
	return f, nil
}

// guarded is a client whose writes pass only while the history of the API server is known to go on.
func (f *Following) guarded(client *http.Client) *http.Client {
	return &http.Client{Transport: f.watcher.History.Guard(client.Transport), Timeout: client.Timeout}
}

// Follow watches the cluster until ctx ends. Every replica does.
func (f *Following) Follow(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { f.watcher.Tidy(ctx) })
	f.watcher.Run(ctx)
	return nil
}

// FollowKinds watches which kinds the cluster serves, and is Follow from when all is closed. Until
// then what Facts say of objects is that they are not known.
func (f *Following) FollowKinds(ctx context.Context, all <-chan struct{}) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		select {
		case <-all:
			f.watcher.Tidy(ctx)
		case <-ctx.Done():
		}
	})
	f.watcher.RunKinds(ctx, all)
	return nil
}

// Ready says why the graph is not complete yet: nil once every kind has been listed, or has failed
// to be and is reported elsewhere.
func (f *Following) Ready() error { return f.watcher.Ready() }

// KindsReady says why it is not known yet which kinds there are.
func (f *Following) KindsReady() error { return f.watcher.KindsReady() }

// Facts are what the graph and discovery know, for policies to ask. Each call looks at the graph as
// it is then, and holds up events for as long. Follow must be running.
func (f *Following) Facts() policies.Facts { return f.watcher.Facts() }

// NewBrake makes a brake that goes by this graph: all of its options but the Store, which is known.
// It hears of a history that went back.
func (f *Following) NewBrake(o brake.Options) *brake.Brake {
	o.Store = f.store
	b := brake.New(o)
	f.watcher.Listen(follow.Listener{Rewound: b.Rewound, Going: b.Going})
	return b
}

// Requests remembers whose request it was that an object be deleted. A webhook says what it saw.
func (f *Following) Requests() *requested.Record { return f.requests }

// listen has those told who hear of the cluster in every process.
func (f *Following) listen() {
	if f.options.Policies != nil {
		f.watcher.Listen(follow.Listener{Rewound: f.options.Policies.Rewound})
	}
	f.watcher.Listen(follow.Listener{
		Served:      f.requester.Serve,
		Terminating: func(m *metav1.PartialObjectMetadata) { f.requests.Deleted(m.UID) },
		Going:       f.requests.Deleted,
	})
}

// GraphHandler serves the ownership graph as DOT; see GraphPath. It does no authentication.
func (f *Following) GraphHandler() http.Handler { return follow.GraphHandler(f.store) }

// showLeases has the Leases, if there are any, told of what a watch shows.
func (o *Options) showLeases(shown *graph.Object) func() {
	if o.Lease != nil {
		o.Lease.Showing(shown)
	}
	if o.Migration != nil {
		o.Migration.Showing(shown)
	}
	return nil
}
