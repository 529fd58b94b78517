package plane

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// An authority signs the certificates of one plane. Its key never leaves the
// plane's directory, and neither outlives the plane.
type authority struct {
	cert *x509.Certificate
	key  crypto.Signer
}

// A pair is a certificate and its key, both PEM.
type pair struct{ cert, key []byte }

func newAuthority(name string) (*authority, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	cert, err := certutil.NewSelfSignedCACert(certutil.Config{CommonName: name}, key)
	return &authority{cert, key}, err
}

func (a *authority) bundle() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: certutil.CertificateBlockType, Bytes: a.cert.Raw})
}

// client makes a certificate that the API server takes for user in groups.
func (a *authority) client(user string, groups ...string) (pair, error) {
	return a.sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: user, Organization: groups},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

// serving makes a certificate for a server of this machine; the first address of
// the Service range is the API server's name inside the cluster.
func (a *authority) serving(ips ...net.IP) (pair, error) {
	return a.sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: "kube-apiserver"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses: ips,
		DNSNames: []string{"localhost", "kubernetes", "kubernetes.default",
			"kubernetes.default.svc", "kubernetes.default.svc.cluster.local"},
	})
}

func (a *authority) sign(cert *x509.Certificate) (pair, error) {
	key, err := newKey()
	if err != nil {
		return pair{}, err
	}
	if cert.SerialNumber, err = rand.Int(rand.Reader, big.NewInt(1<<62)); err != nil {
		return pair{}, err
	}
	// An hour back: a clock that steps must not make a fresh plane fail.
	cert.NotBefore = time.Now().Add(-time.Hour)
	cert.NotAfter = time.Now().Add(30 * 24 * time.Hour)
	cert.KeyUsage = x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment
	raw, err := x509.CreateCertificate(rand.Reader, cert, a.cert, key.Public(), a.key)
	if err != nil {
		return pair{}, fmt.Errorf("sign certificate of %s: %w", cert.Subject.CommonName, err)
	}
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
	return pair{pem.EncodeToMemory(&pem.Block{Type: certutil.CertificateBlockType, Bytes: raw}), keyPEM}, err
}

// newKey makes an elliptic key: RSA would cost most of the plane's start.
func newKey() (*ecdsa.PrivateKey, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }

// pki is everything secret of one plane, and the files that its children read.
type pki struct {
	dir   string
	ca    *authority
	front *authority // signs the API server's calls to aggregated APIs
}

func newPKI(dir, address string) (*pki, error) {
	ca, caErr := newAuthority("weir-e2e")
	front, frontErr := newAuthority("weir-e2e-front-proxy")
	account, accountErr := newKey()
	if err := errors.Join(caErr, frontErr, accountErr, os.MkdirAll(dir, 0o700)); err != nil {
		return nil, fmt.Errorf("make the certificates: %w", err)
	}
	p := &pki{dir: dir, ca: ca, front: front}
	serving, servingErr := ca.serving(net.ParseIP(address), net.IPv4(10, 96, 0, 1))
	proxy, proxyErr := front.client(frontProxyUser)
	kubelets, kubeletErr := ca.client(kubeletUser)
	accountPEM, accountErr := keyutil.MarshalPrivateKeyToPEM(account)
	caKey, caErr := keyutil.MarshalPrivateKeyToPEM(ca.key)
	if err := errors.Join(servingErr, proxyErr, kubeletErr, accountErr, caErr); err != nil {
		return nil, fmt.Errorf("make the certificates: %w", err)
	}
	for name, data := range map[string][]byte{
		"ca.crt": ca.bundle(), "ca.key": caKey, "front-proxy-ca.crt": front.bundle(),
		"apiserver.crt": serving.cert, "apiserver.key": serving.key,
		"front-proxy.crt": proxy.cert, "front-proxy.key": proxy.key,
		"kubelet-client.crt": kubelets.cert, "kubelet-client.key": kubelets.key,
		"service-account.key": accountPEM,
	} {
		if err := os.WriteFile(p.file(name), data, 0o600); err != nil {
			return nil, fmt.Errorf("write %s: %w", name, err)
		}
	}
	return p, nil
}

// Who the API server is, to aggregated APIs and to kubelets.
const (
	frontProxyUser = "front-proxy-client"
	kubeletUser    = "kube-apiserver-kubelet-client"
)

func (p *pki) file(name string) string { return filepath.Join(p.dir, name) }
