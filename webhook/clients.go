package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"

	"k8s.io/apiserver/pkg/server/dynamiccertificates"
)

// Clients lets only clients connect that have a certificate of a CA. API servers have one if a
// kubeconfig for admission webhooks gives it to them; otherwise no client can be asked for one.
type Clients struct {
	ca *dynamiccertificates.DynamicFileCAContent
}

// NewClients reads the CA from a file, and reads it again when it changes.
func NewClients(file string) (*Clients, error) {
	ca, err := dynamiccertificates.NewDynamicCAContentFromFile("client-ca", file)
	if err != nil {
		return nil, fmt.Errorf("read the CA of clients: %w", err)
	}
	return &Clients{ca}, nil
}

// Start follows the file until ctx ends.
func (c *Clients) Start(ctx context.Context) error {
	c.ca.Run(ctx, 1)
	return nil
}

// Require has connections fail without a certificate. It checks each connection, also a resumed
// one, with the current CA.
func (c *Clients) Require(config *tls.Config) {
	config.ClientAuth = tls.RequireAnyClientCert
	config.VerifyConnection = func(state tls.ConnectionState) error {
		options, ok := c.ca.VerifyOptions()
		if !ok || len(state.PeerCertificates) == 0 {
			return errors.New("clients need a certificate")
		}
		options.Intermediates = x509.NewCertPool()
		for _, between := range state.PeerCertificates[1:] {
			options.Intermediates.AddCert(between)
		}
		if _, err := state.PeerCertificates[0].Verify(options); err != nil {
			return fmt.Errorf("verify the client's certificate: %w", err)
		}
		return nil
	}
}
