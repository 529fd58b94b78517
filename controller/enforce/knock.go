package enforce

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/weir-dev/weir/policies"
)

// servicePort is that of the webhook's Service.
const servicePort = "443"

// knockTime is how long the webhook may take to answer the controller.
const knockTime = 5 * time.Second

// knocker calls the webhook as the API server would. Of a silence the API server only says that it
// was one: packets that something drops and a webhook that hangs look alike from there, and not
// from here.
type knocker struct {
	target   *WebhookTarget
	services typedcorev1.ServicesGetter
	port     string // of the Service
}

// knock tells how far one gets.
func (k *knocker) knock(ctx context.Context, by called) door {
	ctx, cancel := context.WithTimeout(ctx, knockTime)
	defer cancel()
	body, err := json.Marshal(canaryReview(k.target.CanaryNamespace))
	if err != nil {
		return notKnocked
	}
	var connected atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{ConnectDone: func(_, _ string, err error) {
		if err == nil {
			connected.Store(true)
		}
	}})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, k.address(by.token), bytes.NewReader(body))
	if err != nil {
		return notKnocked
	}
	req.Header.Set("Content-Type", "application/json")
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(by.bundle)
	transport := &http.Transport{DialContext: k.dial, DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	resp, err := transport.RoundTrip(req)
	switch {
	case err == nil:
		_ = resp.Body.Close() // what it says does not matter
		return doorAnswers
	case !connected.Load():
		return doorShut
	case ctx.Err() != nil:
		return doorOpen
	}
	return doorAnswers // with a certificate that is not trusted, or it wants one
}

func (k *knocker) address(token string) string {
	path := "/" + token + k.target.Paths[policies.WebhookCanary]
	if k.target.URL != "" {
		return strings.TrimSuffix(k.target.URL, "/") + path
	}
	return "https://" + k.target.Service.Name + "." + k.target.Service.Namespace + ".svc:" + servicePort + path
}

// dial connects to the address of the Service, as the API server does, which looks up no name.
func (k *knocker) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if k.target.URL == "" {
		service, err := k.services.Services(k.target.Service.Namespace).Get(ctx, k.target.Service.Name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		address = net.JoinHostPort(service.Spec.ClusterIP, k.port)
	}
	var d net.Dialer
	return d.DialContext(ctx, network, address)
}

// canaryReview is a review as the API server sends it.
func canaryReview(namespace string) *admissionv1.AdmissionReview {
	lease := metav1.GroupVersionKind{Group: coordinationv1.GroupName, Version: "v1", Kind: "Lease"}
	leases := metav1.GroupVersionResource{Group: coordinationv1.GroupName, Version: "v1", Resource: "leases"}
	return &admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID: "canary", Kind: lease, Resource: leases, Name: policies.Canary, Namespace: namespace, Operation: admissionv1.Delete, DryRun: new(true),
			OldObject: runtime.RawExtension{Object: &coordinationv1.Lease{
				TypeMeta:   metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"},
				ObjectMeta: metav1.ObjectMeta{Name: policies.Canary, Namespace: namespace},
			}},
		},
	}
}
