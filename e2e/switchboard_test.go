package e2e

import (
	"net/http"
	"net/http/httputil"
	"strings"
	"sync"

	"github.com/weir-dev/weir/e2e/plane"
	"github.com/weir-dev/weir/e2e/weir"
)

// newServers is a cluster with two API servers on one etcd. Users go to the plane's own.
func newServers(w *fixture, flags ...string) *plane.Server {
	w.Helper()
	second, err := w.plane.AddAPIServer(w.Context(), flags...)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(second.Lag.Release)
	return second
}

// switchboard sends each request to one of two API servers, as a test wants it: watches of
// different kinds then come from servers of which one is behind.
type switchboard struct {
	mu     sync.Mutex
	second func(*http.Request) bool
}

// startWeirSwitched runs a weir whose requests go to the second API server where second says so,
// and to the plane's own otherwise.
func (w *fixture) startWeirSwitched(s *plane.Server, second func(*http.Request) bool, flags ...string) *switchboard {
	w.Helper()
	other := strings.TrimPrefix(s.Config.Host, "https://")
	b := &switchboard{second: second}
	path := w.kubeconfigThrough("switched", func(api *httputil.ReverseProxy) http.Handler {
		rewrite := api.Rewrite
		api.Rewrite = func(r *httputil.ProxyRequest) {
			rewrite(r)
			if b.isSecond(r.In) {
				r.Out.URL.Host = other
			}
		}
		return api
	})
	w.weir = w.runWeir(weir.Options{Kubeconfig: path, Flags: flags})
	return b
}

func (b *switchboard) isSecond(r *http.Request) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.second(r)
}

// set changes which requests go to the second server. Watches that are there go on.
func (b *switchboard) set(second func(*http.Request) bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.second = second
}

// about chooses requests about a resource, of any verb.
func about(resources ...string) func(*http.Request) bool {
	return func(r *http.Request) bool {
		for _, resource := range resources {
			if strings.Contains(r.URL.Path+"/", "/"+resource+"/") {
				return true
			}
		}
		return false
	}
}
