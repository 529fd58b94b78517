package cmd

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	certutil "k8s.io/client-go/util/cert"

	"github.com/weir-dev/weir/controller/leases"
)

// lock is a Lease that another process holds after the first write.
type lock struct{ resourcelock.Interface }

func (lock) Identity() string { return "weir" }
func (lock) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	return &resourcelock.LeaderElectionRecord{HolderIdentity: "other"}, nil, nil
}
func (lock) Create(context.Context, resourcelock.LeaderElectionRecord) error { return nil }

func (lock) Update(context.Context, resourcelock.LeaderElectionRecord) error { return nil }
func (lock) Describe() string                                                { return "a Lease" }
func (lock) RecordEvent(string)                                              {}

// TestAProcessEndsWhenItsLeaseIsTaken: with an error that says so. That it is told to end is none.
func TestAProcessEndsWhenItsLeaseIsTaken(t *testing.T) {
	for name, taken := range map[string]bool{"told to end": false, "another has taken it": true} {
		t.Run(name, func(t *testing.T) {
			elected := leases.New(lock{}, 1, logr.Discard())
			m := newManagement(&rest.Config{Host: "http://127.0.0.1:1"},
				&processFlags{metricsAddress: noAddress, healthAddress: noAddress}, &collectorFlags{leaseDuration: 15 * time.Second})
			m.elect(elected)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if !taken {
				cancel()
				if err := m.run(ctx); err != nil {
					t.Error(err)
				}
				return
			}
			if err := elected.Create(ctx, resourcelock.LeaderElectionRecord{HolderIdentity: "weir"}); err != nil {
				t.Fatal(err)
			}
			if _, _, err := elected.Get(ctx); err != nil {
				t.Fatal(err)
			}
			if err := m.run(ctx); !errors.Is(err, errLeaseTaken) {
				t.Error(err)
			}
		})
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
