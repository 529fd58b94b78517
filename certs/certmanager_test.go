package certs

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestTheSecretOfACertificate(t *testing.T) {
	var log bytes.Buffer
	c := CertManager(CertManagerOptions{
		Namespace: "weir", Name: "webhook", Log: funcr.New(func(_, args string) {
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

func TestOnlyA404OfTheKindMeansThatCertManagerIsNotThere(t *testing.T) {
	kind := schema.GroupResource{Group: "cert-manager.io", Resource: "certificates"}
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"the kind":      {apierrors.NewGenericServerResponse(404, "patch", kind, "", "404 page not found", 0, true), true},
		"the namespace": {apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "weir"), false},
		"forbidden":     {apierrors.NewForbidden(kind, "webhook", errors.New("no")), false},
		"the network":   {errors.New("connection refused"), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := unserved(c.err); got != c.want {
				t.Errorf("unserved is %v", got)
			}
		})
	}
}

func TestWhatCertManagerSaysOfACertificateThatIsNotReady(t *testing.T) {
	certificate := func(conditions ...any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": conditions}}}
	}
	issuing := map[string]any{"type": "Issuing", "status": "True", "reason": "DoesNotExist",
		"message": "Issuing certificate as Secret does not exist"}
	no := map[string]any{"type": "Ready", "status": "False", "reason": "DoesNotExist", "message": "Secret does not exist"}
	yes := map[string]any{"type": "Ready", "status": "True", "reason": "Ready", "message": "Certificate is up to date"}
	for name, c := range map[string]struct {
		given *unstructured.Unstructured
		want  string
	}{
		"not ready":      {certificate(issuing, no), "DoesNotExist: Secret does not exist"},
		"ready":          {certificate(yes), ""},
		"being renewed":  {certificate(yes, issuing), ""},
		"not looked yet": {&unstructured.Unstructured{Object: map[string]any{}}, ""},
	} {
		if got := whyNotReady(c.given); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
