package webhook

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"strconv"

	crwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"
)

// NewServer serves a handler over TLS at an address, HOST:PORT, with whatever certificate is the
// right one when a client calls. Clients are asked for a certificate where clients says who they
// are; nil is everybody. At the end it answers what is under way.
func NewServer(address string, handler http.Handler, certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error), clients *Clients) (crwebhook.Server, error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("listen at %q: %w", address, err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		return nil, fmt.Errorf("listen at %q: %w", address, err)
	}
	strangers := NewCrowd(mostStrangers)
	mux := http.NewServeMux()
	mux.Handle("/", knowing(strangers, handler))
	return crwebhook.NewServer(crwebhook.Options{Host: host, Port: port, WebhookMux: mux, TLSOpts: []func(*tls.Config){
		func(c *tls.Config) {
			c.MinVersion = tls.VersionTLS12
			c.GetCertificate = certificate
			watch(c, strangers)
			if clients != nil {
				clients.require(c)
			}
		},
	}}), nil
}
