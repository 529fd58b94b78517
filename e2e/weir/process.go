package weir

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/weir-dev/weir/e2e/plane"
)

// Options say how weir is run.
type Options struct {
	Binary     string
	Kubeconfig string
	// Dir receives the log, Name names it; the default is "weir".
	Dir, Name string
	// SecureMetrics serves metrics as in production: over TLS, to those who may
	// see them.
	SecureMetrics bool
	// LeaderElect makes it work only while it holds the Lease.
	LeaderElect bool
	// Command is the default, controller, or webhook.
	Command string
	// Alone: readiness does not wait until the API server has asked the webhook, since none is run.
	Alone bool
	// Flags come last, so that they win.
	Flags []string
	// Env is added to this process's own.
	Env []string
}

// Process is a weir that was started.
type Process struct {
	*plane.Child
	// URL is where metrics and the debug graph are.
	URL    string
	health string
	alone  bool
	client *http.Client
}

// Start runs weir, as `weir controller --mode replace` unless the options say
// otherwise, and returns when it is ready.
func Start(ctx context.Context, o Options) (*Process, error) {
	p, err := Launch(ctx, o)
	if err != nil {
		return nil, err
	}
	if err := p.AwaitReady(ctx); err != nil {
		p.Kill() // the first error says more
		return nil, err
	}
	return p, nil
}

// NoBrake is a flag for a weir that is to collect much whose owners never were, as in tests: more
// than a cluster has in an hour.
const NoBrake = "--brake-most=0"

// canaryTime is short: where no other collector works, as in most tests, there is nothing to wait
// for.
const canaryTime = "100ms"

// Launch is Start for those who do not want to wait.
func Launch(ctx context.Context, o Options) (*Process, error) {
	metrics, err := plane.FreePort()
	if err != nil {
		return nil, err
	}
	health, err := plane.FreePort()
	if err != nil {
		return nil, err
	}
	p := &Process{health: "http://" + loopback(health), URL: "http://" + loopback(metrics), alone: o.Alone}
	if o.SecureMetrics {
		p.URL = "https://" + loopback(metrics)
	}
	p.client = &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		// It signs its own certificate, and what is tested is who it lets in.
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true},
		DisableKeepAlives: true, // a killed weir leaves no dead connections behind
	}}
	name := o.Name
	if name == "" {
		name = "weir"
	}
	command := []string{"controller", "--mode", "replace", "--leader-elect=" + strconv.FormatBool(o.LeaderElect), "--canary-time", canaryTime}
	if o.Command != "" {
		command = []string{o.Command}
	}
	args := slices.Concat(command, []string{
		"--kubeconfig", o.Kubeconfig, "--log-format", "json", "-v", "1",
		"--metrics-bind-address", loopback(metrics), "--metrics-secure=" + strconv.FormatBool(o.SecureMetrics),
		"--health-probe-bind-address", loopback(health),
	}, o.Flags)
	p.Child = plane.Command(name, o.Binary, filepath.Join(o.Dir, name+".log"), args...)
	p.Env = append([]string{"GOMAXPROCS="}, o.Env...) // it runs as anywhere else, whatever make gives the tests
	return p, p.Start(ctx)
}

// Restart runs it again after it has ended, with the same arguments.
func (p *Process) Restart(ctx context.Context) error {
	if err := p.Start(ctx); err != nil {
		return err
	}
	return p.AwaitReady(ctx)
}

// AwaitReady waits for /readyz, and for the metrics, which another server serves.
// It gives up when the process ends.
func (p *Process) AwaitReady(ctx context.Context) error {
	last := errors.New("it was not asked")
	err := plane.Poll(ctx, 2*time.Minute, func(ctx context.Context) (bool, error) {
		if err := p.Ended(); err != nil {
			return false, err
		}
		if last = p.Ready(ctx); last != nil {
			return false, nil
		}
		_, last = p.Get(ctx, "/metrics", "")
		var status *StatusError
		return last == nil || errors.As(last, &status), nil // whoever refuses is there
	})
	if err != nil {
		return fmt.Errorf("wait for %s: %w (%w); its log ends with\n%s", p.Name, err, last, p.Tail(20))
	}
	return nil
}

// Ended is an error once the process has ended.
func (p *Process) Ended() error {
	select {
	case <-p.Exited():
		return fmt.Errorf("it ended: %w", p.Wait())
	default:
		return nil
	}
}

// Ready is nil while /readyz says so.
func (p *Process) Ready(ctx context.Context) error {
	path := "/readyz"
	if p.alone {
		path += "?exclude=enforced"
	}
	_, err := p.get(ctx, p.health+path, "")
	return err
}

// Enforced is what one of the conditions of /readyz says: whether the API server has asked the
// webhook.
func (p *Process) Enforced(ctx context.Context) error {
	_, err := p.get(ctx, p.health+"/readyz/enforced", "")
	return err
}

// Get asks for a path below URL, as the owner of a bearer token unless that is
// empty. The error of an answer other than 200 is a StatusError.
func (p *Process) Get(ctx context.Context, path, token string) (string, error) {
	return p.get(ctx, p.URL+path, token)
}

// StatusError is an HTTP status other than 200.
type StatusError struct {
	Code int
	Body string
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("HTTP status %d: %.1000s", e.Code, e.Body)
}

func (p *Process) get(ctx context.Context, url, token string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := p.client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = &StatusError{resp.StatusCode, string(body)}
	}
	return string(body), err
}

// Output is all that it has written so far.
func (p *Process) Output() (string, error) {
	data, err := os.ReadFile(p.LogPath)
	if err != nil {
		return "", fmt.Errorf("read the log of %s: %w", p.Name, err)
	}
	return string(data), nil
}

func loopback(port int) string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}
