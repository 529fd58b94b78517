package certs

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
)

func TestTheSecretOfACertificate(t *testing.T) {
	var log bytes.Buffer
	c := CertManager(CertManagerOptions{
		Namespace: "weir", Name: "webhook", SecretName: "webhook", Log: funcr.New(func(_, args string) {
			log.WriteString(args + "\n")
		}, funcr.Options{}),
	}).(*certManager)
	if _, err := c.Bundle(); err == nil || !strings.Contains(err.Error(),
		"Secret weir/webhook of Certificate webhook: cert-manager has not written it yet") {
		t.Errorf("before there is a Secret the error is %v", err)
	}
	ca := makeCA(time.Now().Add(-time.Hour), 2*time.Hour)
	crt, key := ca.leaf(time.Now(), time.Hour)
	c.see(&corev1.Secret{Data: map[string][]byte{certKey: crt, keyKey: key, caKey: ca.pem}})
	serves := func(when string) {
		t.Helper()
		pair, err := c.GetCertificate(nil)
		if err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		if chain, _ := parseCerts(crt); !pair.Leaf.Equal(chain[0]) {
			t.Errorf("%s: serves another certificate", when)
		}
		if bundle, err := c.Bundle(); err != nil || names(bundle, ca) != "a" {
			t.Errorf("%s: trusts %q, %v", when, names(bundle, ca), err)
		}
	}
	serves("issued")
	c.see(nil)
	serves("the Secret is deleted")
	if !strings.Contains(log.String(), "is gone: waiting until cert-manager creates it again") {
		t.Errorf("did not say that the Secret is gone:\n%s", &log)
	}
	_, other := ca.leaf(time.Now(), time.Hour)
	c.see(&corev1.Secret{Data: map[string][]byte{certKey: crt, keyKey: other, caKey: ca.pem}})
	serves("the key is another's")
	if !strings.Contains(log.String(), "not a pair") {
		t.Errorf("did not say what is wrong with the Secret:\n%s", &log)
	}
}
