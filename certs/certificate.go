package certs

import (
	"context"
	"fmt"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	cmmeta "github.com/cert-manager/cert-manager/pkg/apis/meta/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
)

var certificates = certmanagerv1.SchemeGroupVersion.WithResource("certificates")

// applyCertificate makes the Certificate what the options say.
func applyCertificate(ctx context.Context, objects dynamic.Interface, o CertManagerOptions) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(wantCertificate(o))
	if err == nil {
		// These fields are not ours, and would be applied as empty.
		delete(content, "status")
		unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
		_, err = objects.Resource(certificates).Namespace(o.Namespace).Apply(ctx, o.Name,
			&unstructured.Unstructured{Object: content}, metav1.ApplyOptions{FieldManager: "weir", Force: true})
	}
	if err != nil {
		return fmt.Errorf("apply Certificate %s/%s of cert-manager: %w", o.Namespace, o.Name, err)
	}
	return nil
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
