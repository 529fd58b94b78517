package certs

import (
	"context"
	"errors"
	"fmt"
	"time"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	cmmeta "github.com/cert-manager/cert-manager/pkg/apis/meta/v1"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

var certificates = certmanagerv1.SchemeGroupVersion.WithResource("certificates")

// applyEvery is how often the Certificate is applied; after a failure it is tried every checkEvery.
const applyEvery = time.Minute

// CertManagerOptions are the options of a Certificate of cert-manager.
type CertManagerOptions struct {
	Config                 *rest.Config
	Namespace, Name        string // of the Certificate
	SecretName             string // what cert-manager writes
	IssuerKind, IssuerName string
	Names                  []string // DNS names, and addresses
	// Apply keeps the Certificate as these options say. Processes that only serve just read the
	// Secret.
	Apply bool
	Log   logr.Logger
}

// certManager follows the Secret that cert-manager writes.
type certManager struct {
	holder
	o   CertManagerOptions
	due time.Time // when to apply the Certificate next
}

// CertManager returns a Source that serves what cert-manager issues, and trusts the CA that it
// names.
func CertManager(o CertManagerOptions) Source {
	o.Log = o.Log.WithValues("certificate", o.Namespace+"/"+o.Name)
	c := &certManager{o: o}
	c.holder = newHolder(o.Log, fmt.Errorf("%s: cert-manager has not written it yet", c.where()))
	return c
}

func (c *certManager) where() string {
	return fmt.Sprintf("Secret %s/%s of Certificate %s", c.o.Namespace, c.o.SecretName, c.o.Name)
}

func (c *certManager) Start(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(c.o.Config)
	if err != nil {
		return fmt.Errorf("make a client for %s: %w", c.where(), err)
	}
	objects, err := dynamic.NewForConfig(c.o.Config)
	if err != nil {
		return fmt.Errorf("make a client for Certificate %s/%s: %w", c.o.Namespace, c.o.Name, err)
	}
	c.apply(ctx, objects)
	return followSecret(ctx, client, c.o.Namespace, c.o.SecretName, "the Certificate", &c.reports, c.see,
		func() {
			c.apply(ctx, objects)
			c.take(time.Now(), material{})
		})
}

// see reads the Secret. If it is gone, nothing changes: cert-manager makes it again.
func (c *certManager) see(found *corev1.Secret) {
	if found == nil {
		c.reports.report("read the Secret of the Certificate",
			errors.New(c.where()+" is gone: waiting until cert-manager creates it again"))
		return
	}
	m := parse(c.where(), found.Data[certKey], found.Data[keyKey], found.Data[caKey])
	c.reports.report("read the Secret of the Certificate", errors.Join(m.whyNoPair, m.whyNoBundle))
	c.take(time.Now(), m)
}

// apply makes the Certificate what the options say, when that is due. What keeps cert-manager from
// issuing is in the Certificate's status.
func (c *certManager) apply(ctx context.Context, objects dynamic.Interface) {
	now := time.Now()
	if !c.o.Apply || now.Before(c.due) {
		return
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(wantCertificate(c.o))
	if err == nil {
		// These fields are not ours, and would be applied as empty.
		delete(content, "status")
		unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
		_, err = objects.Resource(certificates).Namespace(c.o.Namespace).Apply(ctx, c.o.Name,
			&unstructured.Unstructured{Object: content}, metav1.ApplyOptions{FieldManager: "weir", Force: true})
	}
	c.due = now.Add(applyEvery)
	if err != nil {
		c.due = now.Add(checkEvery)
		err = fmt.Errorf("apply Certificate %s/%s of cert-manager: %w", c.o.Namespace, c.o.Name, err)
	}
	if ctx.Err() == nil {
		c.reports.report("apply the Certificate", err)
	}
}

func wantCertificate(o CertManagerOptions) *certmanagerv1.Certificate {
	names, ips := namesAndAddresses(o.Names)
	var addresses []string
	for _, ip := range ips {
		addresses = append(addresses, ip.String())
	}
	return &certmanagerv1.Certificate{
		TypeMeta: metav1.TypeMeta{APIVersion: certmanagerv1.SchemeGroupVersion.String(), Kind: certmanagerv1.CertificateKind},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: o.Namespace, Name: o.Name, Labels: map[string]string{"app.kubernetes.io/managed-by": "weir"},
		},
		Spec: certmanagerv1.CertificateSpec{
			SecretName:  o.SecretName,
			DNSNames:    names,
			IPAddresses: addresses,
			IssuerRef: cmmeta.IssuerReference{
				Group: certmanagerv1.SchemeGroupVersion.Group, Kind: o.IssuerKind, Name: o.IssuerName,
			},
			Usages: []certmanagerv1.KeyUsage{certmanagerv1.UsageDigitalSignature, certmanagerv1.UsageServerAuth},
			PrivateKey: &certmanagerv1.CertificatePrivateKey{
				Algorithm: certmanagerv1.ECDSAKeyAlgorithm, Size: 256, RotationPolicy: certmanagerv1.RotationPolicyAlways,
			},
		},
	}
}
