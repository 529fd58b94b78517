package certs

import (
	"context"
	"fmt"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	cmmeta "github.com/cert-manager/cert-manager/pkg/apis/meta/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
)

var certificates = certmanagerv1.SchemeGroupVersion.WithResource("certificates")

// applyCertificate makes the Certificate what the options say, and returns it as it is then.
func applyCertificate(
	ctx context.Context, objects dynamic.Interface, o CertManagerOptions,
) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(wantCertificate(o))
	if err != nil {
		return nil, fmt.Errorf("write Certificate %s/%s: %w", o.Namespace, o.Name, err)
	}
	// These fields are not ours, and would be applied as empty.
	delete(content, "status")
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")

	applied, err := objects.Resource(certificates).Namespace(o.Namespace).Apply(ctx, o.Name,
		&unstructured.Unstructured{Object: content}, metav1.ApplyOptions{FieldManager: "weir", Force: true})
	switch {
	case err == nil:
		return applied, nil
	case unserved(err):
		return nil, fmt.Errorf("apply Certificate %s/%s: the API server does not know certificates.cert-manager.io: "+
			"install cert-manager, or have Weir's certificate from elsewhere", o.Namespace, o.Name)
	default:
		return nil, fmt.Errorf("apply Certificate %s/%s: %w", o.Namespace, o.Name, err)
	}
}

// unserved reports whether a 404 is about the kind: one about the namespace names it.
func unserved(err error) bool {
	status, ok := err.(apierrors.APIStatus)
	return ok && apierrors.IsNotFound(err) && (status.Status().Details == nil || status.Status().Details.Name == "")
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

// whyNotReady returns what keeps cert-manager from issuing, as it says; empty if nothing does, or
// it has not looked yet.
func whyNotReady(certificate *unstructured.Unstructured) string {
	conditions, _, _ := unstructured.NestedSlice(certificate.Object, "status", "conditions")
	for _, c := range conditions {
		condition, ok := c.(map[string]any)
		if ok && condition["type"] == string(certmanagerv1.CertificateConditionReady) &&
			condition["status"] != string(metav1.ConditionTrue) {
			return fmt.Sprintf("%v: %v", condition["reason"], condition["message"])
		}
	}
	return ""
}
