package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"

	"k8s.io/apiserver/pkg/server/dynamiccertificates"
)

// Clients are who may connect at all: those with a certificate of a CA. API servers have one where
// a kubeconfig for admission webhooks gives it to them; without that no client can be asked for
// one.
type Clients struct {
	ca *dynamiccertificates.DynamicFileCAContent
}

// NewClients reads the CA from a file, which is read again when it changes.
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

// Require has a connection fail without a certificate. It is looked at in each connection, be it a
// resumed one, with the CA as it is then.
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
