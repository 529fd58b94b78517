//go:build full

package certs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apiutil "github.com/cert-manager/cert-manager/pkg/api/util"
	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	cmmeta "github.com/cert-manager/cert-manager/pkg/apis/meta/v1"
	cmclient "github.com/cert-manager/cert-manager/pkg/client/clientset/versioned"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/weir-dev/weir/certs"
	"github.com/weir-dev/weir/e2e/certs/certmanager"
)

const (
	webhookCertificate = "weir-webhook"
	caCertificate      = "ca"
)

// issued is a site whose certificate comes from cert-manager.
type issued struct {
	*site
	api cmclient.Interface
}

func (s *issued) source(name string, apply bool, dnsNames ...string) certs.Source {
	return certs.CertManager(certs.CertManagerOptions{
		Config: server.config, Namespace: s.namespace, Name: webhookCertificate, SecretName: webhookCertificate + "-tls",
		IssuerName: "ca", Names: append([]string{"localhost"}, dnsNames...), Apply: apply, Settle: settled, Log: s.logger(name),
	})
}

func TestCertManagersCertificateIsRenewedAndReplacedWhileRequestsFlow(t *testing.T) {
	t.Parallel()
	s := &issued{site: newSite(t, "certs-cert-manager")}
	s.control = s.start(s.source("controller", true))
	for i := range replicas {
		s.replicas = append(s.replicas, s.serve(s.source(fmt.Sprintf("webhook-%d", i), false)))
	}
	s.until("the controller says that cert-manager is not there", func() error {
		if !s.said("install cert-manager") {
			return errors.New("it has not")
		}
		return nil
	})
	s.installCertManager()
	s.issueCA()
	s.open()
	first := s.newest()
	s.until("all serve what was issued", s.allServeUnder(first))
	s.unharmed("issued")

	before := s.served()
	s.renew(webhookCertificate)
	s.until("all serve what was renewed", s.allServeAnother(before))
	s.unharmed("renewed")

	before = s.served()
	if err := server.client.CoreV1().Secrets(s.namespace).Delete(t.Context(), webhookCertificate+"-tls", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.until("all serve what was issued for the lost Secret", s.allServeAnother(before))
	s.unharmed("lost")

	before = s.served()
	s.control.end()
	s.control = s.keep(s.start(s.resumed(s.source("controller-again", true, "weir.example.com"))))
	s.until("all serve the certificate with one more name", s.allServeAnother(before))
	if pair, err := s.replicas[0].GetCertificate(nil); err != nil || !slices.Contains(pair.Leaf.DNSNames, "weir.example.com") {
		t.Errorf("the certificate after a change of names: %v, %v", pair, err)
	}
	s.unharmed("changed")

	// cert-manager does not issue again what a replaced CA has signed: that takes an operator, or
	// time. The controller restarts in the middle.
	s.renewCA()
	s.renew(webhookCertificate)
	s.until("the new CA is in the bundle", s.another(first))
	second := s.newest()
	if err := s.allServeUnder(first)(); err != nil {
		t.Errorf("when the CA is replaced, certificates of the old one are still served: %v", err)
	}
	s.control.end()
	s.control = s.keep(s.start(s.resumed(s.source("controller-once-more", true, "weir.example.com"))))
	s.until("all serve under the new CA", s.allServeUnder(second))
	s.unharmed("under another CA")
	if bundle, err := s.control.Bundle(); err != nil || strings.Count(string(bundle), "BEGIN CERTIFICATE") != 2 {
		t.Errorf("the bundle is to have the old CA while its certificates are valid: %s, %v", bundle, err)
	}
}

// resumed gives a source what is in the configuration, as the controller does at its start.
func (s *issued) resumed(source certs.Source) certs.Source {
	s.Helper()
	c, err := server.client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(s.Context(), s.namespace, metav1.GetOptions{})
	if err != nil {
		s.Fatal(err)
	}
	if err := source.Remember(c.Webhooks[0].ClientConfig.CABundle); err != nil {
		s.Fatal(err)
	}
	return source
}

// installCertManager makes its kinds known and runs its controllers.
func (s *issued) installCertManager() {
	s.Helper()
	dir, err := exec.CommandContext(s.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/cert-manager/cert-manager").Output()
	if err != nil {
		s.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "deploy", "crds", "*.yaml"))
	if err != nil || len(files) == 0 {
		s.Fatalf("find cert-manager's CRDs in %s: %v, %v", dir, files, err)
	}
	crds := server.objects.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	for _, f := range files {
		crd := s.read(f)
		if _, err := crds.Create(s.Context(), crd, metav1.CreateOptions{}); err != nil {
			s.Fatal(err)
		}
		plural, _, _ := strings.Cut(crd.GetName(), ".")
		group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
		s.until("cert-manager's kinds are served", func() error {
			_, err := server.objects.Resource(schema.GroupVersionResource{Group: group, Version: "v1", Resource: plural}).List(s.Context(), metav1.ListOptions{})
			return err
		})
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.Context()))
	wait, err := certmanager.Start(ctx, server.kubeconfig)
	s.Cleanup(func() {
		cancel()
		if wait != nil {
			wait()
		}
	})
	if err != nil {
		s.Fatal(err)
	}
	if s.api, err = cmclient.NewForConfig(server.config); err != nil {
		s.Fatal(err)
	}
}

func (s *issued) read(file string) *unstructured.Unstructured {
	s.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		s.Fatal(err)
	}
	data, err = yaml.YAMLToJSON(data)
	if err != nil {
		s.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal(data, &u.Object); err != nil {
		s.Fatal(err)
	}
	return u
}

// issueCA makes the CA of the namespace, as cert-manager's users do: a self-signed certificate that
// an Issuer signs with.
func (s *issued) issueCA() {
	s.Helper()
	in := metav1.ObjectMeta{Namespace: s.namespace}
	issuer := func(name string, config certmanagerv1.IssuerConfig) {
		in.Name = name
		i := &certmanagerv1.Issuer{ObjectMeta: in, Spec: certmanagerv1.IssuerSpec{IssuerConfig: config}}
		if _, err := s.api.CertmanagerV1().Issuers(s.namespace).Create(s.Context(), i, metav1.CreateOptions{}); err != nil {
			s.Fatal(err)
		}
	}
	issuer("self-signed", certmanagerv1.IssuerConfig{SelfSigned: &certmanagerv1.SelfSignedIssuer{}})
	issuer("ca", certmanagerv1.IssuerConfig{CA: &certmanagerv1.CAIssuer{SecretName: caCertificate}})
	in.Name = caCertificate
	c := &certmanagerv1.Certificate{ObjectMeta: in, Spec: certmanagerv1.CertificateSpec{
		IsCA: true, CommonName: "test-ca", SecretName: caCertificate,
		IssuerRef:  cmmeta.IssuerReference{Name: "self-signed"},
		PrivateKey: &certmanagerv1.CertificatePrivateKey{Algorithm: certmanagerv1.ECDSAKeyAlgorithm, RotationPolicy: certmanagerv1.RotationPolicyAlways},
	}}
	if _, err := s.api.CertmanagerV1().Certificates(s.namespace).Create(s.Context(), c, metav1.CreateOptions{}); err != nil {
		s.Fatal(err)
	}
}

// renew asks cert-manager for a renewal the way that cmctl does.
func (s *issued) renew(name string) {
	s.Helper()
	certificates := s.api.CertmanagerV1().Certificates(s.namespace)
	s.until("a renewal is asked for", func() error {
		c, err := certificates.Get(s.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		apiutil.SetCertificateCondition(c, c.Generation, certmanagerv1.CertificateConditionIssuing, cmmeta.ConditionTrue, "ManuallyTriggered", "by a test")
		_, err = certificates.UpdateStatus(s.Context(), c, metav1.UpdateOptions{})
		return err
	})
}

// renewCA returns once the Issuer has another CA to sign with.
func (s *issued) renewCA() {
	s.Helper()
	secrets := server.client.CoreV1().Secrets(s.namespace)
	old, err := secrets.Get(s.Context(), caCertificate, metav1.GetOptions{})
	if err != nil {
		s.Fatal(err)
	}
	s.renew(caCertificate)
	s.until("there is another CA", func() error {
		now, err := secrets.Get(s.Context(), caCertificate, metav1.GetOptions{})
		if err == nil && string(now.Data["tls.crt"]) == string(old.Data["tls.crt"]) {
			err = errors.New("there is not")
		}
		return err
	})
}
