package snapshot

import (
	"context"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/controller/kinds"
	"github.com/weir-dev/weir/policies"
)

// usualHome is the namespace in which Weir is installed where nothing says another.
const usualHome = "weir-system"

// home is Weir's own namespace, in which propagation and brakes do not hold: the one of the Service
// by which the API server asks the webhook, as it is to the processes of Weir; none where that is a
// URL. Whoever may not read webhook configurations is told what holds where Weir usually is.
func (p *Policies) home(ctx context.Context) string {
	for _, kind := range []schema.GroupResource{kinds.ValidatingConfigurations, kinds.MutatingConfigurations} {
		u, err := p.objects.Resource(kind.WithVersion("v1")).Get(ctx, policies.WebhookConfigurations, metav1.GetOptions{})
		if err != nil {
			continue
		}
		var c admissionregistrationv1.ValidatingWebhookConfiguration // of the other kind, all but what is read here
		if runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &c) != nil || len(c.Webhooks) == 0 {
			continue
		}
		if service := c.Webhooks[0].ClientConfig.Service; service != nil {
			return service.Namespace
		}
		return ""
	}
	return usualHome
}
