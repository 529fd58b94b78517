package certs

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"time"
)

// The names that Secrets of type kubernetes.io/tls, cert-manager and its authority agree on.
const (
	certKey = "tls.crt"
	keyKey  = "tls.key"
	caKey   = "ca.crt"
)

// parseCerts reads a bundle. What is not a certificate has no place in one: half a file must not
// pass for a short one.
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

// encodeCerts writes a bundle, nothing for no certificates.
func encodeCerts(certs []*x509.Certificate) []byte {
	var out bytes.Buffer
	for _, c := range certs {
		_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: c.Raw}) // a buffer takes everything
	}
	return out.Bytes()
}

// chainOf is a served certificate's chain, the leaf first.
func chainOf(pair *tls.Certificate) ([]*x509.Certificate, error) {
	var chain []*x509.Certificate
	for _, der := range pair.Certificate {
		cert, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, err
		}
		chain = append(chain, cert)
	}
	return chain, nil
}

// signs says whether the chain leads to ca. It is about signatures: whether both are valid today is
// another question, so it is asked for a time at which they were.
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

// namesAndAddresses tells apart what clients compare in different ways: a certificate that has an
// address among its DNS names is for no client that calls the address.
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
	return bytes.Equal(c.RawIssuer, c.RawSubject) && c.CheckSignature(c.SignatureAlgorithm, c.RawTBSCertificate, c.Signature) == nil
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
