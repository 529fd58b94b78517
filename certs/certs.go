// Package certs brings the certificate that the webhook serves with, and the CA bundle by which the
// API server knows it. There are three ways behind one interface: files of a mounted Secret, a
// Certificate of cert-manager, and Weir's own CA in a Secret.
//
// What all three hold to: a request never fails because something is being replaced. A new CA is in
// the bundle before anything is served under it, for long enough that the bundle is where the API
// server reads it (settle), and an old CA stays in the bundle for as long as a certificate under it
// may be served.
//
//	CA in the bundle      old ──────────────────────────────────────┐ its last certificate has expired
//	                          new ─────────────────────────────────────────▶
//	certificate served    old ────────┐
//	                                  └ new, once settled ─────────────────▶
//
// Weir's own CA and its certificate are in one Secret, so all three go through the same rotation:
// what is offered is trusted, settles, and is served (rotation.go, holder.go).
//
// Goroutines: Source.Start and Token.Start each run on the caller's. Each has one lock, of what the
// server and the configurations read of it meanwhile; no request is made under one.
package certs

import (
	"context"
	"crypto/tls"
	"time"
)

// settle is how long a new CA is in the bundle before anything is served under it. It has to cover
// the way of a Secret to the controller, from there into the webhook configurations, and from those
// into each API server's cache; together that is a second or two in a cluster that is well, and a
// restarted controller needs about ten.
const settle = 30 * time.Second

// Source is where the certificate comes from. The process that serves and the one that writes
// webhook configurations each have one; only GetCertificate needs a certificate of its own.
type Source interface {
	// Start keeps certificate and bundle true until ctx ends.
	Start(ctx context.Context) error
	// GetCertificate is for tls.Config. It fails until there is a certificate.
	GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// Bundle is the PEM of what the API server is to trust, old and new while one replaces the
	// other. It fails until there is one.
	Bundle() ([]byte, error)
	// Changed returns a channel that is closed at the next change of the bundle.
	Changed() <-chan struct{}
	// Expiry is when the certificate that is served ends, and false while there is none.
	Expiry() (time.Time, bool)
	// Remember takes in a bundle from before: whoever writes the bundle gives it, before its first
	// write, the one that it finds written, so that neither a restart in the middle of a replacement
	// loses a CA, nor a switch from one source to another.
	Remember(bundle []byte) error
}
