package certs

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"
)

// The names that Secrets of type kubernetes.io/tls, cert-manager and its authority agree on.
const (
	certKey = "tls.crt"
	keyKey  = "tls.key"
	caKey   = "ca.crt"
)

// parseCerts reads a bundle. It fails if there is anything else: half a file must not pass for a
// short one.
func parseCerts(data []byte) ([]*x509.Certificate, error) {
	var certs []*x509.Certificate
	rest := bytes.TrimSpace(data)
	for len(rest) > 0 {
		block, after := pem.Decode(rest)
		if block == nil {
			return nil, fmt.Errorf("after %d certificates there is something that is not PEM", len(certs))
		}
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("%s among the certificates", block.Type)
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("certificate %d: %w", len(certs)+1, err)
		}
		certs = append(certs, cert)
		rest = bytes.TrimSpace(after)
	}
	if len(certs) == 0 {
		return nil, errors.New("no certificate in it")
	}
	return certs, nil
}

// encodeCerts returns a bundle, nil for no certificates.
func encodeCerts(certs []*x509.Certificate) []byte {
	var out bytes.Buffer
	for _, c := range certs {
		_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: c.Raw}) // a buffer takes everything
	}
	return out.Bytes()
}

// pairIn returns a certificate with its key, or nil if they are not a pair.
func pairIn(data map[string][]byte, crt, key string) *tls.Certificate {
	pair, err := tls.X509KeyPair(data[crt], data[key])
	if err != nil {
		return nil
	}
	return &pair
}

// made is a certificate with its key.
type made struct {
	pair            *tls.Certificate
	certPEM, keyPEM []byte
}

// makePair makes a certificate that is signed by a CA, or if that is nil by itself. It is valid
// from a little before now, since the API server's clock may be behind.
func makePair(template *x509.Certificate, ca *tls.Certificate, now time.Time, lasts time.Duration) (made, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return made{}, err
	}
	template.BasicConstraintsValid, template.Subject = true, pkix.Name{CommonName: "weir-webhook"}
	template.NotBefore, template.NotAfter = now.Add(-min(lasts/10, 5*time.Minute)), now.Add(lasts)
	parent, signer := template, any(key)
	if ca == nil {
		template.Subject.CommonName = "weir-webhook-ca"
	} else {
		parent, signer = ca.Leaf, ca.PrivateKey
		template.NotAfter = earlier(template.NotAfter, ca.Leaf.NotAfter)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return made{}, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return made{}, err
	}
	m := made{certPEM: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		keyPEM: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})}
	pair, err := tls.X509KeyPair(m.certPEM, m.keyPEM)
	m.pair = &pair
	return m, err
}

// chainOf returns the chain of a served certificate, the leaf first.
func chainOf(pair *tls.Certificate) ([]*x509.Certificate, error) {
	return x509.ParseCertificates(bytes.Join(pair.Certificate, nil))
}

// signs reports whether the chain leads to ca. It asks about signatures, and not whether both are
// valid today, so it verifies at a time at which they were.
func signs(ca *x509.Certificate, chain []*x509.Certificate) bool {
	roots, between := x509.NewCertPool(), x509.NewCertPool()
	roots.AddCert(ca)
	then := ca.NotBefore
	for i, c := range chain {
		if i > 0 {
			between.AddCert(c)
		}
		then = later(then, c.NotBefore)
	}
	_, err := chain[0].Verify(x509.VerifyOptions{
		Roots: roots, Intermediates: between, CurrentTime: then, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
	})
	return err == nil
}

// namesAndAddresses splits DNS names and IP addresses, since clients do not look for an address
// among the DNS names of a certificate.
func namesAndAddresses(all []string) (names []string, addresses []net.IP) {
	for _, n := range all {
		if ip := net.ParseIP(n); ip != nil {
			addresses = append(addresses, ip)
		} else {
			names = append(names, n)
		}
	}
	return names, addresses
}

func selfSigned(c *x509.Certificate) bool {
	return bytes.Equal(c.RawIssuer, c.RawSubject) &&
		c.CheckSignature(c.SignatureAlgorithm, c.RawTBSCertificate, c.Signature) == nil
}

func later(a, b time.Time) time.Time { return slices.MaxFunc([]time.Time{a, b}, time.Time.Compare) }

func earlier(a, b time.Time) time.Time { return slices.MinFunc([]time.Time{a, b}, time.Time.Compare) }
