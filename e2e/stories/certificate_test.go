//go:build stories

package stories

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const cmModule = "../certs" // it has cert-manager

// certManager: the same chart with certificates of cert-manager. Neither the switch, nor that one
// is lost and issued again, nor the way back refuses a request.
func (s *story) certManager() {
	s.weir()
	s.keep("Fail")
	s.startCertManager()
	before := s.served()
	st := s.stream()
	st.flowing(20)
	s.weir("certificates.type=certManager")
	s.until("cert-manager's certificate is served", s.another(before))
	s.must("-n", weirNamespace, "wait", "--for=condition=Ready", "certificate/weir-webhook", "--timeout=60s")
	s.awaitFinalizers()
	st.flowing(50)
	st.unharmed()

	st = s.stream()
	st.flowing(20)
	before = s.served()
	// A certificate whose Secret is gone is issued again.
	s.must("-n", weirNamespace, "delete", "secret", "weir-webhook-tls")
	s.until("the renewed certificate is served", s.another(before))
	st.flowing(50)
	st.unharmed()
	s.backToOwnCA()
}

// backToOwnCA: by a rollback.
func (s *story) backToOwnCA() {
	st := s.stream()
	st.flowing(20)
	before := s.served()
	s.helm("rollback", "weir", "--wait", "--timeout", "3m")
	release.extra = nil
	s.until("Weir's own certificate is served", s.another(before))
	s.awaitFinalizers()
	st.flowing(50)
	st.unharmed()
}

// startCertManager adds cert-manager's kinds, and runs its controllers here until the end of all
// stories.
func (s *story) startCertManager() {
	s.Helper()
	list := exec.CommandContext(s.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/cert-manager/cert-manager")
	list.Dir, list.Env = cmModule, append(os.Environ(), "GOWORK=off")
	dir, err := list.Output()
	if err != nil {
		s.Fatalf("find cert-manager: %v", err)
	}
	s.must("apply", "--server-side", "-f", filepath.Join(strings.TrimSpace(string(dir)), "deploy", "crds"))
	s.established("certificates.cert-manager.io", "issuers.cert-manager.io")

	binary := filepath.Join(cluster.dir, "cert-manager")
	build := exec.CommandContext(s.Context(), "go", "build", "-o", binary, "./cmd/cert-manager")
	build.Dir, build.Env = cmModule, append(os.Environ(), "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		s.Fatalf("build cert-manager's controllers: %v\n%s", err, out)
	}
	// Stories after this one are told in an installation that needs it.
	cmd := program(context.Background(), binary, "--kubeconfig", cluster.kubeconfig)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		s.Fatal(err)
	}
	atEnd(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
}

var port = regexp.MustCompile(`Forwarding from 127\.0\.0\.1:(\d+)`)

// served are the certificates that the webhook's pods serve, by pod. kubectl stands in for the API
// server: it reaches pods of every cluster.
func (s *story) served() map[string]*x509.Certificate {
	s.Helper()
	out, err := s.certificates(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	return out
}

func (s *story) certificates(ctx context.Context) (map[string]*x509.Certificate, error) {
	pods, err := cluster.client.CoreV1().Pods(weirNamespace).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/component=webhook"})
	if err != nil {
		return nil, err
	}
	if len(pods.Items) == 0 {
		return nil, errors.New("there is no pod of the webhook")
	}
	out := map[string]*x509.Certificate{}
	for _, p := range pods.Items {
		if p.DeletionTimestamp != nil {
			continue
		}
		if out[p.Name], err = certificate(ctx, p.Name); err != nil {
			return nil, fmt.Errorf("ask pod %s for its certificate: %w", p.Name, err)
		}
	}
	return out, nil
}

// forward has kubectl forward a port of Weir's until end is called.
func forward(ctx context.Context, of, at string) (address string, end func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	forward := program(ctx, cluster.kubectl, "port-forward", "-n", weirNamespace, of, "--address=127.0.0.1", ":"+at)
	stdout, err := forward.StdoutPipe()
	if err == nil {
		err = forward.Start()
	}
	if err != nil {
		cancel()
		return "", nil, err
	}
	end = func() { cancel(); _ = forward.Wait() } // it was killed
	line, err := bufio.NewReader(stdout).ReadString('\n')
	found := port.FindStringSubmatch(line)
	if found == nil {
		end()
		return "", nil, fmt.Errorf("kubectl port-forward says %q: %w", line, err)
	}
	return "127.0.0.1:" + found[1], end, nil
}

func certificate(ctx context.Context, pod string) (*x509.Certificate, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	address, end, err := forward(ctx, "pod/"+pod, "9443")
	if err != nil {
		return nil, err
	}
	defer end()
	// What it is signed by is looked at, not whether to trust it.
	conn, err := (&tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, ServerName: "weir-webhook." + weirNamespace + ".svc"}}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return conn.(*tls.Conn).ConnectionState().PeerCertificates[0], nil
}

// another is an objection while a pod serves what is signed by a CA of before.
func (s *story) another(before map[string]*x509.Certificate) func(context.Context) error {
	old := map[string]bool{}
	for _, c := range before {
		old[signer(c)] = true
	}
	return func(ctx context.Context) error {
		now, err := s.certificates(ctx)
		if err != nil {
			return err
		}
		for pod, c := range now {
			if old[signer(c)] {
				return fmt.Errorf("pod %s still serves a certificate of %s", pod, signer(c))
			}
		}
		return nil
	}
}

// signer tells one CA from another; what signed itself is its own.
func signer(c *x509.Certificate) string {
	if len(c.AuthorityKeyId) > 0 {
		return fmt.Sprintf("%x", c.AuthorityKeyId)
	}
	return c.SerialNumber.String()
}
