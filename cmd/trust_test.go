package cmd

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"

	"github.com/weir-dev/weir/controller/enforce"
	"github.com/weir-dev/weir/internal/testkit/apitest"
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
func (s serving) Bundle() ([]byte, error)   { return nil, nil }
func (s serving) Changed() <-chan struct{}  { return nil }
func (s serving) Expiry() (time.Time, bool) { return time.Time{}, false }
func (s serving) Remember([]byte) error     { return nil }

// madePair is a certificate that began an hour ago, with its CA in the chain, and the PEM of both.
// 0 is a year.
func madePair(t *testing.T, maxAge time.Duration) ([]byte, *tls.Certificate) {
	t.Helper()
	certificate, key, err := cert.GenerateSelfSignedCertKeyWithOptions(cert.SelfSignedCertKeyOptions{Host: "weir.test", MaxAge: maxAge})
	if err != nil {
		t.Fatal(err)
	}
	c, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	return certificate, &c
}

// writtenToken begins the paths that putBundle writes.
const writtenToken = "0123456789ABCDEFGHIJKLMNOP"

// putBundle writes a webhook configuration, mutating or validating, with a webhook; without a
// bundle, with none.
func putBundle(api *apitest.Server, configuration string, bundle []byte) {
	webhooks := ""
	if bundle != nil {
		webhooks = "{name: a.weir.dev, clientConfig: {url: 'https://weir.test/" + writtenToken + "/delete', caBundle: " + base64.StdEncoding.EncodeToString(bundle) + "}}"
	}
	kind := strings.ToUpper(configuration[:1]) + configuration[1:] + "WebhookConfiguration"
	api.Put(configuration+"webhookconfigurations", "{apiVersion: admissionregistration.k8s.io/v1, kind: "+kind+", metadata: {name: weir}, webhooks: ["+webhooks+"]}")
}

func TestAWebhookIsReadyWhenTheAPIServerTrustsIt(t *testing.T) {
	mine, served := madePair(t, 0)
	other, _ := madePair(t, 0)
	old, expired := madePair(t, 30*time.Minute) // it began an hour ago
	for name, c := range map[string]struct {
		mutating, validating []byte // nil: there is none
		refuse               *apitest.Reply
		served               *tls.Certificate
		token                string // that is taken, if it is not the one that is written
		want                 string
	}{
		"no certificate":                  {served: nil, want: "no certificate yet"},
		"no configuration":                {served: served},
		"nothing in it":                   {mutating: empty, served: served},
		"its own CA":                      {mutating: mine, served: served},
		"its own CA, validating":          {mutating: empty, validating: mine, served: served},
		"its own CA, and another":         {mutating: append(append([]byte(nil), other...), mine...), served: served},
		"its own CA, which has expired":   {mutating: old, served: expired},
		"another CA":                      {mutating: other, served: served, want: "does not trust the certificate yet: x509: certificate signed by unknown authority"},
		"another CA, validating":          {validating: other, served: served, want: "does not trust"},
		"its own CA in one, not in other": {mutating: mine, validating: other, served: served, want: "does not trust"},
		"no CA":                           {validating: []byte("none"), served: served, want: "there is no certificate in the CA bundle"},
		"another token":                   {mutating: mine, served: served, token: "another", want: "the API server calls by a path that is not taken here"},
		"another token, validating":       {validating: mine, served: served, token: "another", want: "not taken here"},
		"another token, nobody calls":     {mutating: empty, served: served, token: "another"},
		"may not see":                     {refuse: apitest.Refuse(403, "Forbidden", "no"), served: served},
		"an API server that is down":      {refuse: apitest.Refuse(500, "InternalError", "etcd"), served: served, want: "etcd"},
	} {
		t.Run(name, func(t *testing.T) {
			api := apitest.New()
			for configuration, bundle := range map[string][]byte{"mutating": c.mutating, "validating": c.validating} {
				if len(bundle) > 0 {
					putBundle(api, configuration, bundle)
				} else if bundle != nil {
					putBundle(api, configuration, nil)
				}
			}
			if c.refuse != nil {
				api.Intercept(func(apitest.Request) *apitest.Reply { return c.refuse })
			}
			err := trusted(api.Config(), serving{c.served}, func(t string) bool { return t == cmp.Or(c.token, writtenToken) }, logr.Discard())()
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// empty is a bundle of a configuration without webhooks.
var empty = []byte{}

// Whoever writes webhook configurations goes on trusting what any of them says, and nothing is
// amiss where there are none.
func TestWhatIsTrustedIsRememberedFromAllConfigurations(t *testing.T) {
	a, _ := madePair(t, 0)
	b, _ := madePair(t, 0)
	for name, c := range map[string]struct {
		mutating, validating []byte
		want                 [][]byte
	}{
		"none": {nil, nil, nil}, "one": {nil, b, [][]byte{b}}, "the same": {a, a, [][]byte{a}}, "two": {a, b, [][]byte{a, b}},
	} {
		t.Run(name, func(t *testing.T) {
			api := apitest.New()
			if c.mutating != nil {
				putBundle(api, "mutating", c.mutating)
			}
			if c.validating != nil {
				putBundle(api, "validating", c.validating)
			}
			written, err := enforce.WrittenNow(t.Context(), api.Config())
			if err != nil || !slices.EqualFunc(written.Bundles, c.want, bytes.Equal) {
				t.Errorf("%d bundles (%v), want %d", len(written.Bundles), err, len(c.want))
			}
			for _, f := range []targetFlags{{certificates: certificatesFiles, dir: ownFiles(t)}, {certificates: certificatesSelf}} {
				bundle := firstBundle(t, &f, api.Config(), written.Bundles)
				for _, ca := range c.want {
					leaf, _ := pem.Decode(ca[bytes.LastIndex(ca, []byte("-----BEGIN")):])
					if found := pemHas(bundle, leaf.Bytes); !found {
						t.Errorf("%s: a CA of before is not in the bundle", f.certificates)
					}
				}
			}
		})
	}
}

// firstBundle is what a process trusts first that finds bundles in the webhook configurations.
func firstBundle(t *testing.T, f *targetFlags, config *rest.Config, written [][]byte) []byte {
	t.Helper()
	source := f.source(config, true, logr.Discard())
	for _, bundle := range written {
		if err := source.Remember(bundle); err != nil {
			t.Error(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	changed, ended := source.Changed(), make(chan error, 1)
	go func() { ended <- source.Start(ctx) }()
	<-changed // its own CA is there; the others were before
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	bundle, err := source.Bundle()
	if err != nil {
		t.Fatal(err)
	}
	return bundle
}

// ownFiles is a directory with a certificate and its CA.
func ownFiles(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	certificate, key, err := cert.GenerateSelfSignedCertKey("weir.test", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	ca := certificate[bytes.LastIndex(certificate, []byte("-----BEGIN")):]
	for name, content := range map[string][]byte{"tls.crt": certificate, "tls.key": key, "ca.crt": ca} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func pemHas(bundle, der []byte) bool {
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		if bytes.Equal(block.Bytes, der) {
			return true
		}
	}
	return false
}
