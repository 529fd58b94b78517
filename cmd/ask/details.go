package ask

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/controller/insight"
)

const (
	// mostPodNamespaces and mostPods bound what is read to tell how long pods have to stop. Of others that is not told.
	mostPodNamespaces = 3
	mostPods          = 500
)

// details reads what a plan tells besides: how long pods have to stop, and whether the workloads go that are to take finalizers off.
// What cannot be read is not told; an error is Ctrl-C.
func (a *asking) details(ctx context.Context, p *insight.Plan) error {
	client, err := a.client()
	if err != nil {
		return nil
	}
	if namespaces := p.PodNamespaces(); len(namespaces) <= mostPodNamespaces {
		for _, namespace := range namespaces {
			if list, err := client.Resource(podKind).Namespace(namespace).List(ctx, metav1.ListOptions{Limit: mostPods}); err == nil {
				p.Grace(list.Items)
			}
		}
	}
	if namespaces := p.WorkloadNamespaces(); len(namespaces) <= mostPodNamespaces {
		for _, namespace := range namespaces {
			for _, kind := range workloadKinds {
				if list, err := client.Resource(kind).Namespace(namespace).List(ctx, metav1.ListOptions{Limit: mostWorkloads}); err == nil {
					p.Workloads(list.Items)
				}
			}
		}
	}
	return ctx.Err()
}
