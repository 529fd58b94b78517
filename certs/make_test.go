package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"sync/atomic"
	"time"
)

// madeCA is a CA that tests sign with.
type madeCA struct {
	cert          *x509.Certificate
	key           *ecdsa.PrivateKey
	pem, keyInPEM []byte
}

var serial atomic.Int64

func makeCA(from time.Time, valid time.Duration) *madeCA {
	// All have one subject, as CAs that follow one another do.
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "test-ca"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	ca := &madeCA{}
	ca.cert, ca.key, ca.pem, ca.keyInPEM = makeCert(template, from, valid, nil)
	return ca
}

// leaf is a certificate under the CA, with its key, in PEM.
func (ca *madeCA) leaf(from time.Time, valid time.Duration) (crt, key []byte) {
	template := &x509.Certificate{DNSNames: []string{"webhook.test"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	_, _, crt, key = makeCert(template, from, valid, ca)
	return crt, key
}

func (ca *madeCA) pair(from time.Time, valid time.Duration) *tls.Certificate {
	pair, err := tls.X509KeyPair(ca.leaf(from, valid))
	if err != nil {
		panic(err)
	}
	return &pair
}

func makeCert(
	template *x509.Certificate, from time.Time, valid time.Duration, by *madeCA,
) (*x509.Certificate, *ecdsa.PrivateKey, []byte, []byte) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template.SerialNumber = big.NewInt(serial.Add(1))
	template.NotBefore, template.NotAfter = from, from.Add(valid)
	parent, signer := template, key
	if by != nil {
		parent, signer = by.cert, by.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		panic(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		panic(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		panic(err)
	}
	return cert, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
}

// names says which of the certificates a bundle has, in its order, by the letters a, b, c ….
func names(bundle []byte, of ...*madeCA) string {
	if len(bundle) == 0 {
		return ""
	}
	certs, err := parseCerts(bundle)
	if err != nil {
		return err.Error()
	}
	out := ""
	for _, c := range certs {
		name := "?"
		for i, ca := range of {
			if ca.cert.Equal(c) {
				name = fmt.Sprintf("%c", 'a'+i)
			}
		}
		out += name
	}
	return out
}

// at is a time that certificates can hold: they know no fractions of a second.
var at = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
