package weir

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"time"

	"github.com/weir-dev/weir/e2e/plane"
)

// StartGC runs weir gc, and returns when it has seen all objects. It serves no metrics, and no
// health.
func StartGC(ctx context.Context, o Options) (*Process, error) {
	socket := filepath.Join(o.Dir, "gc.sock")
	p := &Process{Child: plane.Command("weir", o.Binary, filepath.Join(o.Dir, "weir.log"),
		"gc", "--kubeconfig", o.Kubeconfig, "--control", "unix:"+socket)}
	if err := p.Start(ctx); err != nil {
		return nil, err
	}
	client := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}}
	defer client.CloseIdleConnections()
	err := plane.Poll(ctx, time.Minute, func(ctx context.Context) (bool, error) {
		if err := p.Ended(); err != nil {
			return false, err
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://weir/ready", nil)
		if err != nil {
			return false, err
		}
		resp, err := client.Do(req)
		if err != nil {
			return false, nil // the socket is not there yet
		}
		return resp.StatusCode == http.StatusOK, resp.Body.Close()
	})
	if err != nil {
		p.Kill() // the first error says more
		return nil, fmt.Errorf("wait for weir gc: %w; its log ends with\n%s", err, p.Tail(20))
	}
	return p, nil
}
