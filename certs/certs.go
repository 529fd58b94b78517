// Package certs has the certificate that the webhook serves, and the CA bundle by which the API
// server knows it. There are three sources behind one interface: files of a mounted Secret, a
// Certificate of cert-manager, and Weir's own CA in a Secret.
//
// With all three, a request never fails because something is being replaced. A new CA is in the bundle
// before anything is served under it, for long enough that the API server has the bundle (settle),
// and an old CA stays in the bundle for as long as a certificate under it may be served.
//
//	CA in the bundle      old ──────────────────────────────────────┐ its last certificate has expired
//	                          new ─────────────────────────────────────────▶
//	certificate served    old ────────┐
//	                                  └ new, once settled ─────────────────▶
//
// All go through the same rotation, since Weir's own CA and its certificate are in one Secret: what
// is offered is trusted, settles, and is served (rotation.go, holder.go).
//
// Source.Start and Token.Start run on the caller's goroutines. A source has one lock, of what the
// server and the configurations read of it; no request is made under it.
package certs

import (
	"context"
	"crypto/tls"
	"time"
)

// settle is how long a new CA is in the bundle before anything is served under it. It has to cover
// the way from a Secret to the controller, from there into the webhook configurations, and from
// those into each API server's cache. Together that is a second or two in a healthy cluster, and
// about ten with a restarted controller.
const settle = 30 * time.Second

// Source is where the certificate comes from. The process that serves and the one that writes
// webhook configurations each have one; only GetCertificate needs a certificate.
type Source interface {
	// Start keeps certificate and bundle up to date until ctx ends.
	Start(ctx context.Context) error
	// GetCertificate is for tls.Config. It fails until there is a certificate.
	GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// Bundle returns the PEM of what the API server is to trust, old and new while one replaces the
	// other. It fails until there is one.
	Bundle() ([]byte, error)
	// Changed returns a channel that is closed at the next change of the bundle.
	Changed() <-chan struct{}
	// Expiry returns when the certificate that is served expires, and false while there is none.
	Expiry() (time.Time, bool)
	// Remember adds the CAs of an earlier bundle. The process that writes the bundle passes the one
	// that it finds written, before its first write, so that neither a restart during a replacement
	// nor a switch from one source to another loses a CA.
	Remember(bundle []byte) error
}
