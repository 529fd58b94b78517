package cmd

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"

	"github.com/weir-dev/weir/webhook"
)

// mostConnections bounds the connections of each port but the webhook's. A kubelet has one at a
// time, and each scraper of metrics one.
const mostConnections = 64

// port serves a handler at an address once the manager has started, over TLS if over is set.
func port(mgr manager.Manager, name, address string, handler http.Handler, over *tls.Config) error {
	server := webhook.NewServer(handler, mostConnections)
	server.ReadTimeout = 5 * time.Second
	p, err := serverAt(name, address, server, over, time.Second) // a client that retries finds another process
	if err != nil {
		return err
	}
	return mgr.Add(p)
}

// serverAt listens at an address at once: two processes must not both work before one of them
// fails. At shutdown it waits that long for requests under way.
func serverAt(name, address string, server *http.Server, over *tls.Config, end time.Duration) (*manager.Server, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("serve %s: %w", name, err)
	}
	if over != nil {
		l = tls.NewListener(l, over)
	}
	return &manager.Server{Name: name, Listener: l, ShutdownTimeout: &end, Server: server}, nil
}

// probes serves whether the process lives and is ready, and each check by its name.
func probes(ready map[string]func() error) http.Handler {
	checks := map[string]healthz.Checker{}
	for name, check := range ready {
		checks[name] = func(*http.Request) error { return check() }
	}
	r := chi.NewRouter()
	for path, handler := range map[string]*healthz.Handler{
		"/healthz": {Checks: map[string]healthz.Checker{"ping": healthz.Ping}},
		"/readyz":  {Checks: checks},
	} {
		r.Handle(path, http.StripPrefix(path, handler))
		r.Handle(path+"/*", http.StripPrefix(path, handler))
	}
	return r
}

// servedMetrics serves metrics. With guarded, only clients that the API server authenticates and
// authorizes may read them.
func servedMetrics(mgr manager.Manager, guarded bool) (http.Handler, error) {
	r := chi.NewRouter()
	r.Handle("/metrics", promhttp.HandlerFor(metrics.Registry,
		promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError}))
	if !guarded {
		return r, nil
	}
	filter, err := filters.WithAuthenticationAndAuthorization(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("ask the API server who may read metrics: %w", err)
	}
	return filter(ctrl.Log.WithName("metrics"), r)
}
