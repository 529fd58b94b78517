package certs

import (
	"testing"
	"time"
)

// API servers call a URL with an address as they do one with a name.
func TestCertificatesAreForAddressesToo(t *testing.T) {
	all := []string{"weir.test", "127.0.0.1", "::1", "2001:db8::7"}
	data, err := (&SelfOptions{Names: all, CADuration: time.Hour, LeafDuration: time.Hour}).next(time.Now(),
		time.Now(), nil)
	if err != nil {
		t.Fatal(err)
	}
	cert := pairIn(data, servedCertKey, servedKeyKey).Leaf
	for _, name := range []string{"weir.test", "127.0.0.1", "[::1]", "[2001:db8::7]"} {
		if err := cert.VerifyHostname(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"127.0.0.2", "other.test"} {
		if cert.VerifyHostname(name) == nil {
			t.Errorf("%s: it is for anybody", name)
		}
	}
	spec := wantCertificate(CertManagerOptions{Names: all}).Spec
	if len(spec.DNSNames) != 1 || len(spec.IPAddresses) != 3 || spec.IPAddresses[1] != "::1" {
		t.Errorf("of cert-manager are asked %v and %v", spec.DNSNames, spec.IPAddresses)
	}
}
