package snapshot

import (
	"context"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/policies"
)

// usualHome is the namespace in which Weir is installed where nothing says another.
const usualHome = "weir-system"

// home is Weir's own namespace, in which propagation and brakes do not hold: the one of the Service
// by which the API server asks the webhook, as it is to the processes of Weir; none where that is a
// URL. Whoever may not read webhook configurations is told what holds where Weir usually is.
func (p *Policies) home(ctx context.Context) string {
	for _, read := range []func(context.Context) (*admissionregistrationv1.WebhookClientConfig, error){p.validating, p.mutating} {
		called, err := read(ctx)
		switch {
		case err != nil || called == nil:
		case called.Service == nil:
			return ""
		default:
			return called.Service.Namespace
		}
	}
	return usualHome
}

// validating is how the webhook is called that judges requests; nil if it is not.
func (p *Policies) validating(ctx context.Context) (*admissionregistrationv1.WebhookClientConfig, error) {
	c, err := p.clients.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(ctx, policies.WebhookConfigurations, metav1.GetOptions{})
	if err != nil || len(c.Webhooks) == 0 {
		return nil, err
	}
	return &c.Webhooks[0].ClientConfig, nil
}

// mutating is how the webhook is called that changes objects; nil if it is not.
func (p *Policies) mutating(ctx context.Context) (*admissionregistrationv1.WebhookClientConfig, error) {
	c, err := p.clients.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(ctx, policies.WebhookConfigurations, metav1.GetOptions{})
	if err != nil || len(c.Webhooks) == 0 {
		return nil, err
	}
	return &c.Webhooks[0].ClientConfig, nil
}
