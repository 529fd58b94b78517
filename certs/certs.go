// Package certs brings the certificate that the webhook serves with, and the CA bundle by which the API server knows it.
// There are three ways behind one interface: files of a mounted Secret, a Certificate of cert-manager, and Weir's own CA
// in a Secret.
package certs

import (
	"context"
	"crypto/tls"
)

// Source is where the certificate comes from. The process that serves and the one that writes webhook configurations
// each have one; only GetCertificate needs a certificate of its own.
type Source interface {
	// Start keeps certificate and bundle true until ctx ends.
	Start(ctx context.Context) error
	// GetCertificate is for tls.Config. It fails until there is a certificate.
	GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// Bundle is the PEM of what the API server is to trust, old and new while one replaces the other. It fails until
	// there is one.
	Bundle() ([]byte, error)
	// Changed returns a channel that is closed at the next change of the bundle.
	Changed() <-chan struct{}
}
