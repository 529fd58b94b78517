package enforce

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedadmissionregistrationv1 "k8s.io/client-go/kubernetes/typed/admissionregistration/v1"
	"k8s.io/client-go/rest"

	"github.com/weir-dev/weir/policies"
)

// Written is what the webhook configurations say now, each value once. There is more than one only
// while they are being written.
type Written struct {
	// Bundles are the CA bundles.
	Bundles [][]byte
	// Tokens are the tokens with which the paths begin; empty for a path without one.
	Tokens []string
}

// WrittenNow reads the webhook configurations.
func WrittenNow(ctx context.Context, config *rest.Config) (Written, error) {
	client, err := typedadmissionregistrationv1.NewForConfig(config)
	if err != nil {
		return Written{}, fmt.Errorf("make a client for webhook configurations: %w", err)
	}
	return writtenNow(ctx, client)
}

func writtenNow(ctx context.Context,
	client typedadmissionregistrationv1.AdmissionregistrationV1Interface) (Written, error) {
	var w Written
	const name = policies.WebhookConfigurations
	mutating, err := client.MutatingWebhookConfigurations().Get(ctx, name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return Written{}, fmt.Errorf("read MutatingWebhookConfiguration %s: %w", name, err)
	}
	for i := range mutating.Webhooks { // none if there is no configuration
		w.add(&mutating.Webhooks[i].ClientConfig)
	}
	validating, err := client.ValidatingWebhookConfigurations().Get(ctx, name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return Written{}, fmt.Errorf("read ValidatingWebhookConfiguration %s: %w", name, err)
	}
	for i := range validating.Webhooks {
		w.add(&validating.Webhooks[i].ClientConfig)
	}
	return w, nil
}

func (w *Written) add(c *admissionregistrationv1.WebhookClientConfig) {
	if !slices.ContainsFunc(w.Bundles, func(b []byte) bool { return bytes.Equal(b, c.CABundle) }) {
		w.Bundles = append(w.Bundles, c.CABundle)
	}
	if token := tokenOf(c); !slices.Contains(w.Tokens, token) {
		w.Tokens = append(w.Tokens, token)
	}
}

// tokenOf returns the segment before the last of a webhook's path.
func tokenOf(c *admissionregistrationv1.WebhookClientConfig) string {
	path := ""
	switch {
	case c.Service != nil && c.Service.Path != nil:
		path = *c.Service.Path
	case c.URL != nil:
		if u, err := url.Parse(*c.URL); err == nil {
			path = u.Path
		}
	}
	segments := strings.Split(path, "/")
	if len(segments) < 3 {
		return ""
	}
	return segments[len(segments)-2]
}
