package load

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/weir-dev/weir/e2e/plane"
)

// A System is something that collects, to be started for each measurement.
type System struct {
	Name  string
	Start func(context.Context) (*Running, error)
}

// Running is a system that was started.
type Running struct {
	*plane.Child
	// Metrics is the system's own /metrics.
	Metrics func(context.Context) (string, error)
	// Ready is how long it took from the start of the process to readiness; 0 where that is not
	// known.
	Ready time.Duration
	// Stop ends it and returns when it is gone.
	Stop func() error
}

// Reference is kube-controller-manager with some of its controllers.
func Reference(p *plane.Plane, name string, controllers plane.Controllers, flags ...string) System {
	return System{Name: name, Start: func(ctx context.Context) (*Running, error) {
		if err := p.StartController(ctx, controllers, flags...); err != nil {
			return nil, err
		}
		return &Running{
			Child: p.Child(plane.ControllerManager),
			Metrics: func(ctx context.Context) (string, error) {
				return p.PartMetrics(ctx, plane.ControllerManager)
			},
			Stop: p.StopController,
		}, nil
	}}
}

// Weir is the binary that users run, in the mode that replaces the reference.
func Weir(p *plane.Plane, binary, kubeconfig string, flags ...string) System {
	return System{Name: "weir", Start: func(ctx context.Context) (*Running, error) {
		metrics, err := plane.FreePort()
		if err != nil {
			return nil, err
		}
		health, err := plane.FreePort()
		if err != nil {
			return nil, err
		}
		c := plane.Command("weir", binary, filepath.Join(p.Dir, "weir.log"), append([]string{
			"controller", "--mode", "replace", "--kubeconfig", kubeconfig,
			"--leader-elect=false", "--canary-time", "100ms",
			"--metrics-bind-address", fmt.Sprintf("127.0.0.1:%d", metrics), "--metrics-secure=false",
			"--health-probe-bind-address", fmt.Sprintf("127.0.0.1:%d", health),
		}, flags...)...)
		started := time.Now()
		if err := c.Start(ctx); err != nil {
			return nil, err
		}
		if err := awaitReady(ctx, c, fmt.Sprintf("http://127.0.0.1:%d/readyz", health)); err != nil {
			_ = c.Stop(plane.DefaultGrace) // the first error says more
			return nil, err
		}
		return &Running{
			Child: c,
			Metrics: func(ctx context.Context) (string, error) {
				return get(ctx, fmt.Sprintf("http://127.0.0.1:%d/metrics", metrics))
			},
			Ready: time.Since(started),
			Stop:  func() error { return c.Stop(plane.DefaultGrace) },
		}, nil
	}}
}

func awaitReady(ctx context.Context, c *plane.Child, url string) error {
	err := wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, 5*time.Minute, true, func(ctx context.Context) (bool, error) {
		select {
		case <-c.Exited():
			return false, fmt.Errorf("it ended: %w", c.Wait())
		default:
		}
		_, err := get(ctx, url)
		return err == nil, nil
	})
	if err != nil {
		return fmt.Errorf("wait for %s: %w; its log ends with\n%s", c.Name, err, c.Tail(20))
	}
	return nil
}

func get(ctx context.Context, url string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", url, resp.Status)
	}
	return string(body), err
}
