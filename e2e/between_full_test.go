//go:build full

package e2e

import (
	"net/http"
	"net/http/httputil"
	"strings"
	"sync"

	"github.com/weir-dev/weir/e2e/weir"
)

// between stands between weir and the API server, and sees what weir asks for.
type between struct {
	mu      sync.Mutex
	accepts map[string]int // what reads asked for: get, list or watch, and the Accept header
}

// startWeirBehind runs a weir of the fixture's own that reaches the API server
// through a server that stands between.
func (w *fixture) startWeirBehind(flags ...string) *between {
	w.Helper()
	b := &between{accepts: map[string]int{}}
	path := w.kubeconfigThrough("behind", func(api *httputil.ReverseProxy) http.Handler {
		rewrite := api.Rewrite
		api.Rewrite = func(r *httputil.ProxyRequest) { rewrite(r); b.see(r) }
		return api
	})
	w.weir = w.runWeir(weir.Options{Kubeconfig: path, Flags: flags})
	return b
}

// see notes what a read asks for.
func (b *between) see(r *httputil.ProxyRequest) {
	path := strings.Split(strings.Trim(r.In.URL.Path, "/"), "/")
	if r.In.Method != http.MethodGet || len(path) < 3 || path[0] == "apis" && len(path) < 4 {
		return // discovery
	}
	how := "read"
	if r.In.URL.Query().Get("watch") != "" {
		how = "watch"
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.accepts[how+" "+r.In.Header.Get("Accept")+" "+path[len(path)-1]]++
}
