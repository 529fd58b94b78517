//go:build full

package e2e

import (
	"github.com/weir-dev/weir/e2e/plane"
	"github.com/weir-dev/weir/e2e/weir"
)

// startWeirBalanced runs a weir that reaches API servers through a load balancer.
func (w *fixture) startWeirBalanced(hosts ...string) *plane.Balancer {
	w.Helper()
	b, err := plane.NewBalancer(w.Context(), hosts...)
	if err != nil {
		w.Fatal(err)
	}
	path, err := identity(w.Context(), w.plane, weirUser)
	if err != nil {
		w.Fatal(err)
	}
	if path, err = b.Kubeconfig(path); err != nil {
		w.Fatal(err)
	}
	w.weir = w.runWeir(weir.Options{Kubeconfig: path, Env: []string{
		// client-go's own are 30 s and 15 s.
		"HTTP2_READ_IDLE_TIMEOUT_SECONDS=1", "HTTP2_PING_TIMEOUT_SECONDS=1",
	}})
	return b
}
