package cmd

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/weir-dev/weir/certs"
	"github.com/weir-dev/weir/controller/enforce"
)

// askTrust bounds a read of the webhook configurations.
const askTrust = 2 * time.Second

// trusted returns a check that the API server would trust the served certificate, and call a path
// that is served. The CA bundles in the webhook configurations, if there are any, must verify the
// certificate, and their tokens must be known. After an upgrade certificates may come from another
// source, and the first pod that serves a new one must get no requests before the controller has
// given its CA to the API server.
func trusted(config *rest.Config, source certs.Source, takes func(token string) bool, log logr.Logger) func() error {
	return func() error {
		served, err := source.GetCertificate(nil)
		if err != nil {
			return err
		}
		chain, err := x509.ParseCertificates(bytes.Join(served.Certificate, nil))
		if err != nil {
			return fmt.Errorf("read the certificate: %w", err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), askTrust)
		defer cancel()
		written, err := enforce.WrittenNow(ctx, config)
		if apierrors.IsForbidden(err) {
			log.Info("whether the API server trusts the certificate cannot be seen", "err", err.Error())
			return nil
		}
		if err != nil {
			return err
		}
		for _, t := range written.Tokens {
			if !takes(t) {
				return errors.New("the API server calls by a path that is not taken here: its token is not the one in the Secret")
			}
		}
		for _, bundle := range written.Bundles { // without any, no request is sent here yet
			if err := verifies(bundle, chain); err != nil {
				return fmt.Errorf("the API server does not trust the certificate yet: %w", err)
			}
		}
		return nil
	}
}

// verifies returns why a bundle does not verify a chain. Expiry is left out: an expired certificate
// is still served rather than none, and whether it is trusted is another question.
func verifies(bundle []byte, chain []*x509.Certificate) error {
	o := x509.VerifyOptions{Roots: x509.NewCertPool(), Intermediates: x509.NewCertPool(), CurrentTime: time.Now(),
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}
	if !o.Roots.AppendCertsFromPEM(bundle) {
		return errors.New("there is no certificate in the CA bundle of the webhook configurations")
	}
	for _, c := range chain[1:] {
		o.Intermediates.AddCert(c)
	}
	if end := chain[0].NotAfter; o.CurrentTime.After(end) {
		o.CurrentTime = end
	}
	_, err := chain[0].Verify(o)
	return err
}
