package certs

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/internal/testkit/apitest"
)

// issuer answers for cert-manager, on the clock of a bubble.
type issuer struct {
	*testing.T
	api *apitest.Server

	mu      sync.Mutex
	denied  bool // to read the Secret
	answer  func() *apitest.Reply
	applied []time.Time
	body    string
	lines   []string
}

func withIssuer(t *testing.T, apply bool, test func(*issuer, Source, context.CancelFunc)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		i := &issuer{T: t, api: apitest.New()}
		i.api.Intercept(func(r apitest.Request) *apitest.Reply {
			i.mu.Lock()
			defer i.mu.Unlock()
			switch {
			case i.denied && r.Method == "GET":
				return apitest.Refuse(403, "Forbidden", "you may not list secrets")
			case r.Method != "PATCH":
				return nil
			}
			i.applied, i.body = append(i.applied, time.Now()), r.Path+"?"+r.Query+" "+r.Body
			return i.answer()
		})
		s := CertManager(CertManagerOptions{Config: i.api.Config(), Namespace: "weir", Name: "webhook",
			SecretName: "webhook", IssuerKind: "Issuer", IssuerName: "own", Names: []string{"webhook.test", "10.0.0.7"}, Apply: apply,
			Log: funcr.New(func(_, line string) {
				i.mu.Lock()
				defer i.mu.Unlock()
				i.lines = append(i.lines, line)
			}, funcr.Options{})})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		i.answer = func() *apitest.Reply { return certificate(1, "True", "") }
		go func() { ended <- s.Start(ctx) }()
		synctest.Wait()
		test(i, s, cancel)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// certificate is a Certificate as cert-manager says that it is.
func certificate(generation int, ready, why string) *apitest.Reply {
	return &apitest.Reply{Code: 200, Body: map[string]any{"apiVersion": "cert-manager.io/v1", "kind": "Certificate",
		"metadata": map[string]any{"name": "webhook", "namespace": "weir", "generation": generation},
		"status": map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": ready,
			"reason": "DoesNotExist", "message": why}}}}}
}

// told are the lines of the log that contain a text.
func (i *issuer) told(text string) (out []string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, line := range i.lines {
		if strings.Contains(line, text) {
			out = append(out, line)
		}
	}
	return out
}

// times are how many times the Certificate was applied in a time from now on.
func (i *issuer) times(d time.Duration, answer func() *apitest.Reply) int {
	i.mu.Lock()
	before := len(i.applied)
	i.answer = answer
	i.mu.Unlock()
	<-time.After(d)
	synctest.Wait()
	i.mu.Lock()
	defer i.mu.Unlock()
	return len(i.applied) - before
}

func (i *issuer) deny(yes bool) { i.mu.Lock(); defer i.mu.Unlock(); i.denied = yes }

// put writes the Secret as cert-manager does.
func (i *issuer) put(ca *madeCA, crt, key []byte) {
	in := base64.StdEncoding.EncodeToString
	i.api.Put("secrets",
		fmt.Sprintf(
			"{apiVersion: v1, kind: Secret, metadata: {name: webhook, namespace: weir}, data: {tls.crt: %s, tls.key: %s, "+
				"ca.crt: %s}}", in(crt), in(key), in(ca.pem)))
	synctest.Wait()
}

// TestTheCertificateIsWhatTheOptionsSay: with what is not Weir's to say left out, forced, under
// Weir's name; and each minute again.
func TestTheCertificateIsWhatTheOptionsSay(t *testing.T) {
	withIssuer(t, true, func(i *issuer, _ Source, _ context.CancelFunc) {
		where, body, _ := strings.Cut(i.body, " ")
		if want := "/apis/cert-manager.io/v1/namespaces/weir/certificates/webhook?fieldManager=weir&force=true"; where != want {
			t.Errorf("applied to %s, want %s", where, want)
		}
		var got map[string]any
		if err := json.Unmarshal([]byte(body), &got); err != nil {
			t.Fatal(err)
		}
		want := map[string]any{"apiVersion": "cert-manager.io/v1", "kind": "Certificate",
			"metadata": map[string]any{"namespace": "weir", "name": "webhook",
				"labels": map[string]any{"app.kubernetes.io/managed-by": "weir"}},
			"spec": map[string]any{"secretName": "webhook", "dnsNames": []any{"webhook.test"}, "ipAddresses": []any{"10.0.0.7"},
				"issuerRef":  map[string]any{"group": "cert-manager.io", "kind": "Issuer", "name": "own"},
				"privateKey": map[string]any{"algorithm": "ECDSA", "size": 256.0, "rotationPolicy": "Always"},
				"usages":     []any{"digital signature", "server auth"}}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("applied (-want +got):\n%s", diff)
		}
		if n := i.times(10*applyEvery+5*time.Second, func() *apitest.Reply { return certificate(1, "True", "") }); n != 10 {
			t.Errorf("applied %d times in ten minutes", n)
		}
	})
}

// TestACertificateThatCannotBeAppliedIsToldOnce: and it is tried again soon, until that is over.
func TestACertificateThatCannotBeAppliedIsToldOnce(t *testing.T) {
	for name, c := range map[string]struct {
		answer func() *apitest.Reply
		want   string
	}{
		"no cert-manager": {func() *apitest.Reply {
			return &apitest.Reply{Code: 404, Body: map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure",
				"reason": "NotFound", "code": 404, "message": "the server could not find the requested resource"}}
		}, "apply Certificate weir/webhook of cert-manager: the server could not find the requested resource"},
		"not allowed": {func() *apitest.Reply {
			return apitest.Refuse(403, "Forbidden", "you may not")
		}, "apply Certificate weir/webhook of cert-manager: you may not"},
		"its webhook is not there yet": {func() *apitest.Reply {
			return apitest.Refuse(500, "InternalError", "failed calling webhook")
		}, "apply Certificate weir/webhook of cert-manager: failed calling webhook"},
	} {
		t.Run(name, func(t *testing.T) {
			withIssuer(t, true, func(i *issuer, _ Source, _ context.CancelFunc) {
				i.times(applyEvery-time.Millisecond, c.answer) // the next is about to be applied
				i.times(2*time.Second, c.answer)
				n := i.times(10*checkEvery, c.answer)
				if n < 9 || n > 11 {
					t.Errorf("tried %d times in %s, want one each %s", n, 10*checkEvery, checkEvery)
				}
				if lines := i.told(c.want); len(lines) != 1 {
					t.Errorf("the log says %q, want one with %q", lines, c.want)
				}
				if n := i.times(2*checkEvery, func() *apitest.Reply {
					return certificate(2, "True", "")
				}); n != 1 || len(i.told("this works again")) != 1 {
					t.Errorf("applied %d times when it works again, and told %q", n, i.told("this works again"))
				}
			})
		})
	}
}

// TestAProcessThatOnlyServesAsksForNoCertificate: it follows the Secret, and serves what was there
// when that is gone, or cannot be read.
func TestAProcessThatOnlyServesAsksForNoCertificate(t *testing.T) {
	withIssuer(t, false, func(i *issuer, s Source, _ context.CancelFunc) {
		changed := s.Changed()
		ca := makeCA(time.Now().Add(-time.Hour), 48*time.Hour)
		crt, key := ca.leaf(time.Now(), 10*time.Minute)
		i.put(ca, crt, key)
		<-changed
		serves := func(when string) {
			t.Helper()
			synctest.Wait()
			pair, err := s.GetCertificate(nil)
			if err != nil {
				t.Fatalf("%s: %v", when, err)
			}
			if chain, _ := parseCerts(crt); !pair.Leaf.Equal(chain[0]) {
				t.Errorf("%s: it serves another certificate", when)
			}
		}
		serves("as soon as it is issued")
		i.api.Remove("secrets/weir/webhook")
		<-time.After(time.Second)
		serves("when the Secret is gone")
		i.deny(true)
		i.api.Forget("secrets/weir/webhook")
		i.api.Cut()
		<-time.After(time.Minute)
		serves("when it may not be read any more")
		if lines := i.told("cannot watch the Secret of the Certificate"); len(lines) == 0 {
			t.Error("nothing is told of it")
		}
		i.deny(false)
		crt, key = ca.leaf(time.Now(), 10*time.Minute)
		i.put(ca, crt, key)
		<-time.After(time.Minute)
		serves("when it may be read again, and is another")
		if lines := i.told("this works again: watch the Secret of the Certificate"); len(lines) != 1 {
			t.Errorf("the log says %q", lines)
		}
		if len(i.applied) > 0 {
			t.Errorf("the Certificate was applied %d times", len(i.applied))
		}
	})
}
