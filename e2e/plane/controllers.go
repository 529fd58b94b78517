package plane

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
)

// StartController runs kube-controller-manager with these controllers, also on
// a plane that was started without it, and returns when it is healthy: its
// controllers may not have synced yet.
func (p *Plane) StartController(ctx context.Context, controllers Controllers, flags ...string) error {
	if c := p.Child(ControllerManager); c != nil {
		return errors.New("start kube-controller-manager: it is running")
	}
	path, err := p.binary(ctx, ControllerManager)
	if err != nil {
		return err
	}
	args := []string{
		"--controllers=" + string(controllers),
		// Without credentials of its own the namespace controller lacks
		// rights that only its service account has.
		"--use-service-account-credentials",
		"--service-account-private-key-file=" + p.pki.file("service-account.key"),
		"--root-ca-file=" + p.pki.file("ca.crt"),
		"--cluster-signing-cert-file=" + p.pki.file("ca.crt"),
		"--cluster-signing-key-file=" + p.pki.file("ca.key"),
	}
	err = p.startControlled(ctx, ControllerManager, path, "system:kube-controller-manager",
		append(args, flags...)...)
	if err != nil {
		_ = p.StopController() // the first error says more
	}
	return err
}

// StopController ends kube-controller-manager; nothing happens without one.
func (p *Plane) StopController() error {
	c := p.Child(ControllerManager)
	if c == nil {
		return nil
	}
	err := c.Stop(DefaultGrace)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.children = slices.DeleteFunc(p.children, func(o *Child) bool { return o == c })
	return err
}

func (p *Plane) startScheduler(ctx context.Context, path string) error {
	return p.startControlled(ctx, Scheduler, path, "system:kube-scheduler")
}

// startControlled runs a program of the kube-controller-manager family: they
// share the flags for credentials, leader election and serving.
func (p *Plane) startControlled(ctx context.Context, part Part, path, user string, flags ...string) error {
	port, err := FreePort()
	if err != nil {
		return err
	}
	_, kubeconfig, err := p.UserConfig(user)
	if err != nil {
		return err
	}
	args := []string{
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--leader-elect=false",
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", port),
		"--cert-dir=" + filepath.Join(p.Dir, "pki", string(part)),
	}
	c := Command(string(part), path, p.log(part), append(args, flags...)...)
	if err := p.start(ctx, c); err != nil {
		return err
	}
	p.mu.Lock()
	p.ports[part] = port
	p.mu.Unlock()
	return p.await(ctx, c, answers(localClient(), "https://"+loopback(port)+"/healthz"))
}

// PartMetrics is /metrics of kube-controller-manager or kube-scheduler.
func (p *Plane) PartMetrics(ctx context.Context, part Part) (string, error) {
	p.mu.Lock()
	port, ok := p.ports[part]
	p.mu.Unlock()
	if !ok {
		return "", fmt.Errorf("read the metrics of %s: it is not running", part)
	}
	client, err := p.freshClient()
	if err != nil {
		return "", err
	}
	defer client.CloseIdleConnections()
	// They made their own certificate; the client's is what matters.
	client.Transport.(*http.Transport).TLSClientConfig.InsecureSkipVerify = true
	text, err := get(ctx, client, "https://"+loopback(port)+"/metrics")
	if err != nil {
		return "", fmt.Errorf("read the metrics of %s: %w", part, err)
	}
	return text, nil
}
