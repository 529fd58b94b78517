package plane

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"
)

func (p *Plane) startAPIServer(ctx context.Context, path string) error {
	var err error
	if p.port, err = FreePort(); err != nil {
		return err
	}
	p.Kubeconfig = filepath.Join(p.Dir, "admin.kubeconfig")
	if p.Config, err = p.identity(p.Kubeconfig, "weir-e2e-admin", "system:masters"); err != nil {
		return err
	}
	if p.opts.Audit {
		p.AuditLog = filepath.Join(p.Dir, "audit.log")
	}
	args, err := p.apiServerFlags(p.port, p.etcdURL(), p.AuditLog)
	if err != nil {
		return err
	}
	c := Command(string(APIServer), path, p.log(APIServer), args...)
	c.Env = p.opts.APIServerEnv
	return p.run(ctx, c)
}

// apiServerFlags are those of an API server on a port, to an etcd; audit is the file of
// Options.Audit.
func (p *Plane) apiServerFlags(port int, etcd, audit string) ([]string, error) {
	pki := p.pki.file
	args := []string{
		fmt.Sprintf("--secure-port=%d", port),
		"--bind-address=" + p.opts.address(),
		// Without an address of its own the API server looks for a default
		// route, which an isolated machine does not have.
		"--advertise-address=" + p.opts.address(),
		"--endpoint-reconciler-type=" + p.opts.endpoints(),
		"--etcd-servers=" + etcd,
		"--service-cluster-ip-range=10.96.0.0/16",
		"--authorization-mode=Node,RBAC",
		"--allow-privileged=true",
		"--tls-cert-file=" + pki("apiserver.crt"),
		"--tls-private-key-file=" + pki("apiserver.key"),
		"--client-ca-file=" + pki("ca.crt"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + pki("service-account.key"),
		"--service-account-signing-key-file=" + pki("service-account.key"),
		// For aggregated APIs. They are reached without endpoint routing: a
		// Service of type ExternalName "localhost" then works, while an
		// endpoint could not be on loopback.
		"--requestheader-client-ca-file=" + pki("front-proxy-ca.crt"),
		"--requestheader-allowed-names=" + frontProxyUser,
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + pki("front-proxy.crt"),
		"--proxy-client-key-file=" + pki("front-proxy.key"),
		// For the logs of a real node's pods.
		"--kubelet-client-certificate=" + pki("kubelet-client.crt"),
		"--kubelet-client-key=" + pki("kubelet-client.key"),
		"--kubelet-preferred-address-types=InternalIP",
	}
	if p.opts.Audit {
		policy := filepath.Join(p.Dir, "audit-policy.yaml")
		if err := os.WriteFile(policy, []byte(auditPolicy), 0o644); err != nil {
			return nil, fmt.Errorf("write the audit policy: %w", err)
		}
		args = append(args, "--audit-policy-file="+policy, "--audit-log-path="+audit)
	}
	return append(args, p.opts.APIServerFlags...), nil
}

// auditPolicy logs each request once, when it is answered.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: Metadata
`

// awaitServer waits for an API server, and for the default namespace, which the API server
// makes in the background: ready says nothing about it.
func (p *Plane) awaitServer(ctx context.Context, c *Child, config *rest.Config) error {
	client, err := p.freshClient()
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	for _, path := range []string{"/readyz", "/api/v1/namespaces/default"} {
		if err := p.await(ctx, c, answers(client, config.Host+path)); err != nil {
			return err
		}
	}
	return nil
}

// freshClient shares no connection with other clients of the same config:
// client-go caches transports, and a connection to a server that was restarted
// is found dead only by a request.
func (p *Plane) freshClient() (*http.Client, error) {
	tls, err := rest.TLSConfigFor(p.Config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: tls}}, nil
}

// RestartAPIServer ends the API server and starts it again on the same port
// and data. It returns when it is ready.
func (p *Plane) RestartAPIServer(ctx context.Context) error {
	c := p.Child(APIServer)
	// Open watches keep it from leaving for more than ten seconds. One that is killed
	// instead is something that its clients must survive as well.
	_ = c.Stop(2 * time.Second)
	return p.run(ctx, c)
}

// Metrics is the API server's /metrics, as text.
func (p *Plane) Metrics(ctx context.Context) (string, error) {
	client, err := p.freshClient()
	if err != nil {
		return "", err
	}
	defer client.CloseIdleConnections()
	text, err := get(ctx, client, p.Config.Host+"/metrics")
	if err != nil {
		return "", fmt.Errorf("read the API server's metrics: %w", err)
	}
	return text, nil
}
