package cmd

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	certutil "k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/weir-dev/weir/controller/leases"
)

// lock is a Lease that another process holds after the first write.
type lock struct{ resourcelock.Interface }

func (lock) Identity() string { return "weir" }
func (lock) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	return &resourcelock.LeaderElectionRecord{HolderIdentity: "other"}, nil, nil
}
func (lock) Create(context.Context, resourcelock.LeaderElectionRecord) error { return nil }

// standing is a manager that runs until its context ends, as the real one does.
type standing struct{ manager.Manager }

func (standing) Start(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// TestAProcessEndsWhenItsLeaseIsTaken: with an error that says so. That it is told to end is none.
func TestAProcessEndsWhenItsLeaseIsTaken(t *testing.T) {
	m := &management{elected: leases.New(lock{}, 1, logr.Discard())}
	told, tell := context.WithCancel(t.Context())
	tell()
	if err := m.runLeading(told, standing{}); err != nil {
		t.Errorf("told to end: %v", err)
	}
	if err := m.elected.Create(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "weir"}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := m.elected.Get(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := m.runLeading(t.Context(), standing{}); !errors.Is(err, errLeaseTaken) {
		t.Errorf("another has taken it: %v", err)
	}
}

// TestMetricsAreServedUnderTheWebhooksCertificate: whoever reads them can verify whom he talks to.
// While there is none, they are served under one that nothing verifies.
func TestMetricsAreServedUnderTheWebhooksCertificate(t *testing.T) {
	const name = "weir-webhook.weir-system.svc"
	crt, key, err := certutil.GenerateSelfSignedCertKeyWithFixtures(name, nil, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(crt, key)
	if err != nil {
		t.Fatal(err)
	}
	there := false
	m := newManagement(&rest.Config{}, &processFlags{metricsAddress: ":8443", metricsSecure: true}, nil)
	m.certificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		if !there {
			return nil, errors.New("waiting for the CA")
		}
		return &pair, nil
	}
	server, err := m.metricsTLS()
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(crt)
	if err := handshake(server, &tls.Config{InsecureSkipVerify: true}); err != nil {
		t.Errorf("while there is no certificate: %v", err)
	}
	if err := handshake(server, &tls.Config{RootCAs: roots, ServerName: name}); err == nil {
		t.Error("while there is no certificate: what is served is trusted")
	}
	there = true
	if err := handshake(server, &tls.Config{RootCAs: roots, ServerName: name}); err != nil {
		t.Errorf("with a certificate: %v", err)
	}
}

func handshake(server, client *tls.Config) error {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	go func() { _ = tls.Server(a, server).Handshake() }() // the client's error says it
	return tls.Client(b, client).Handshake()
}
