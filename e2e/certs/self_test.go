package certs

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/certs"
)

const caSecret = "weir-webhook-ca"

// selfOf are the options that all processes of a site have. A CA is due after 40 s, and noticed
// within ten more.
func (s *site) selfOf(name string, serve bool) certs.Source {
	return certs.Self(certs.SelfOptions{
		Config: server.config, Namespace: s.namespace, Name: caSecret, Names: []string{"localhost"}, Administer: !serve,
		CADuration: time.Minute, LeafDuration: 20 * time.Second, Settle: settled, Log: s.logger(name),
	})
}

func TestOwnCAIsReplacedWhileRequestsFlow(t *testing.T) {
	t.Parallel()
	s := newSite(t, "certs-self")
	// All start at once, and each finds no Secret.
	var wg sync.WaitGroup
	s.replicas = make([]*replica, replicas)
	for i := range s.replicas {
		wg.Go(func() { s.replicas[i] = s.serve(s.selfOf(fmt.Sprintf("webhook-%d", i), true)) })
	}
	wg.Go(func() { s.control = s.start(s.selfOf("controller", false)) })
	wg.Wait()
	s.open()
	first := s.newest()
	s.until("all serve under the one CA that won", s.allServeUnder(first))
	s.unharmed("started at once")

	s.until("the CA is replaced when it is due", s.another(first))
	due := s.newest()
	if err := s.allServeUnder(first)(); err != nil {
		t.Errorf("when the CA is replaced, certificates of the old one are still served: %v", err)
	}
	s.until("all serve under the next", s.allServeUnder(due))
	s.unharmed("replaced when due")

	// A user breaks the Secret, and processes restart while the next CA settles.
	s.patchSecret(`{"data":{"tls.key":null}}`)
	s.until("the CA is replaced when it is broken", s.another(due))
	broken := s.newest()
	s.restart(s.replicas[0], s.selfOf("webhook-0-again", true))
	s.control.end()
	s.control = s.keep(s.start(s.selfOf("controller-again", false)))
	s.until("all serve under the next", s.allServeUnder(broken))
	s.unharmed("broken, and restarted")

	if err := server.client.CoreV1().Secrets(s.namespace).Delete(t.Context(), caSecret, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.until("there is a CA again", s.another(broken))
	lost := s.newest()
	s.until("all serve under the next", s.allServeUnder(lost))
	s.unharmed("lost")

	if got := len(s.serials); got < 4 {
		t.Errorf("certificates of %d CAs were served, want those of four at least", got)
	}
}

// newest is the CA that comes first in the bundle.
func (s *site) newest() *x509.Certificate {
	s.Helper()
	var ca *x509.Certificate
	s.until("there is a bundle", func() error {
		bundle, err := s.control.Bundle()
		if err != nil {
			return err
		}
		block, _ := pem.Decode(bundle)
		ca, err = x509.ParseCertificate(block.Bytes)
		return err
	})
	return ca
}

func (s *site) another(than *x509.Certificate) func() error {
	return func() error {
		if s.newest().Equal(than) {
			return fmt.Errorf("it is still %x", than.SubjectKeyId)
		}
		return nil
	}
}

func (s *site) allServeUnder(ca *x509.Certificate) func() error {
	return func() error {
		for i, r := range s.replicas {
			pair, err := r.GetCertificate(nil)
			if err != nil {
				return err
			}
			if !bytes.Equal(pair.Leaf.AuthorityKeyId, ca.SubjectKeyId) {
				return fmt.Errorf("replica %d serves under %x, not %x", i, pair.Leaf.AuthorityKeyId, ca.SubjectKeyId)
			}
		}
		return nil
	}
}

func (s *site) patchSecret(patch string) {
	s.Helper()
	_, err := server.client.CoreV1().Secrets(s.namespace).Patch(s.Context(), caSecret, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		s.Fatal(err)
	}
}
