package webhook

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// issued is a certificate by a parent, or by itself, for clients or for servers.
func issued(t *testing.T, parent *tls.Certificate, usage x509.ExtKeyUsage, end time.Duration) *tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "test"},
		DNSNames:  []string{"weir.test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(end), ExtKeyUsage: []x509.ExtKeyUsage{usage},
		BasicConstraintsValid: true, IsCA: parent == nil,
	}
	by, signer := template, any(key)
	if parent != nil {
		by, signer = parent.Leaf, parent.PrivateKey
	}
	der, err := x509.CreateCertificate(rand.Reader, template, by, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

func TestClientsNeedACertificateOfTheCA(t *testing.T) {
	const year = 365 * 24 * time.Hour
	ca, other := issued(t, nil, x509.ExtKeyUsageAny, year), issued(t, nil, x509.ExtKeyUsageAny, year)
	server := issued(t, nil, x509.ExtKeyUsageServerAuth, year)
	file := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.Certificate[0]}),
		0o600); err != nil {
		t.Fatal(err)
	}
	clients, err := NewClients(file)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		certificate *tls.Certificate
		accepted    bool
	}{
		"none":                      {nil, false},
		"one of the CA":             {issued(t, ca, x509.ExtKeyUsageClientAuth, year), true},
		"one of another CA":         {issued(t, other, x509.ExtKeyUsageClientAuth, year), false},
		"one that is not of any":    {issued(t, nil, x509.ExtKeyUsageClientAuth, year), false},
		"one that has expired":      {issued(t, ca, x509.ExtKeyUsageClientAuth, -time.Minute), false},
		"one of a server":           {issued(t, ca, x509.ExtKeyUsageServerAuth, year), false},
		"one of the CA, once again": {issued(t, ca, x509.ExtKeyUsageClientAuth, year), true},
	} {
		t.Run(name, func(t *testing.T) {
			config := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{*server}}
			clients.Require(config)
			ours, theirs := net.Pipe()
			defer ours.Close()
			client := &tls.Config{InsecureSkipVerify: true} //nolint:gosec // it is about the other side
			if c.certificate != nil {
				client.Certificates = []tls.Certificate{*c.certificate}
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				defer theirs.Close()
				conn := tls.Client(theirs, client)
				if conn.HandshakeContext(t.Context()) == nil {
					_, _ = conn.Read(make([]byte, 1)) // until the server hangs up
				}
			}()
			err := tls.Server(ours, config).HandshakeContext(t.Context())
			if (err == nil) != c.accepted {
				t.Errorf("%v", err)
			}
			ours.Close()
			<-done
		})
	}
}

func TestCAOfClientsIsThere(t *testing.T) {
	if _, err := NewClients(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a file that is not there is taken")
	}
}
