package cmd

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"testing"

	"k8s.io/client-go/rest"
	certutil "k8s.io/client-go/util/cert"
)

// TestMetricsAreServedUnderTheWebhooksCertificate: whoever reads them can verify whom he talks to. While there is none, they
// are served under one that nothing verifies.
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
