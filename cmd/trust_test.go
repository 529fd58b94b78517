package cmd

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/client-go/util/cert"

	"github.com/weir-dev/weir/policies/apitest"
)

// serving is a source that only serves.
type serving struct{ certificate *tls.Certificate }

func (s serving) Start(context.Context) error { return nil }
func (s serving) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if s.certificate == nil {
		return nil, errors.New("there is no certificate yet")
	}
	return s.certificate, nil
}
func (s serving) Bundle() ([]byte, error)  { return nil, nil }
func (s serving) Changed() <-chan struct{} { return nil }

func TestAWebhookIsReadyWhenTheAPIServerTrustsIt(t *testing.T) {
	pair := func() ([]byte, *tls.Certificate) {
		certificate, key, err := cert.GenerateSelfSignedCertKey("weir.test", nil, nil) // with its CA in the chain
		if err != nil {
			t.Fatal(err)
		}
		c, err := tls.X509KeyPair(certificate, key)
		if err != nil {
			t.Fatal(err)
		}
		return certificate, &c
	}
	mine, served := pair()
	other, _ := pair()
	for name, c := range map[string]struct {
		configuration string
		bundle        []byte
		refuse        *apitest.Reply
		served        *tls.Certificate
		want          string
	}{
		"no certificate":             {served: nil, want: "no certificate yet"},
		"no configuration":           {served: served},
		"nothing in it":              {configuration: "mutating", served: served},
		"its own CA":                 {configuration: "mutating", bundle: mine, served: served},
		"its own CA, validating":     {configuration: "validating", bundle: mine, served: served},
		"its own CA, and another":    {configuration: "mutating", bundle: append(append([]byte(nil), other...), mine...), served: served},
		"another CA":                 {configuration: "mutating", bundle: other, served: served, want: "does not trust the certificate yet: x509: certificate signed by unknown authority"},
		"another CA, validating":     {configuration: "validating", bundle: other, served: served, want: "does not trust"},
		"no CA":                      {configuration: "validating", bundle: []byte("none"), served: served, want: "there is no certificate in the CA bundle"},
		"may not see":                {refuse: apitest.Refuse(403, "Forbidden", "no"), served: served},
		"an API server that is down": {refuse: apitest.Refuse(500, "InternalError", "etcd"), served: served, want: "etcd"},
	} {
		t.Run(name, func(t *testing.T) {
			api := apitest.New()
			if c.configuration != "" {
				webhooks := ""
				if c.bundle != nil {
					webhooks = "{name: a.weir.dev, clientConfig: {caBundle: " + base64.StdEncoding.EncodeToString(c.bundle) + "}}"
				}
				kind := strings.ToUpper(c.configuration[:1]) + c.configuration[1:] + "WebhookConfiguration"
				api.Put(c.configuration+"webhookconfigurations", "{apiVersion: admissionregistration.k8s.io/v1, kind: "+kind+", metadata: {name: weir}, webhooks: ["+webhooks+"]}")
			}
			if c.refuse != nil {
				api.Intercept(func(apitest.Request) *apitest.Reply { return c.refuse })
			}
			err := trusted(api.Config(), serving{c.served}, logr.Discard())()
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}
