package ask

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/ask/insight"
	"github.com/weir-dev/weir/ask/snapshot"
)

const (
	// mostPodNamespaces and mostPods bound what is read to tell how long pods have to stop. Of
	// others that is not told.
	mostPodNamespaces = 3
	mostPods          = 500
)

// mostVolumes bounds how many volumes are read to tell what becomes of those of claims.
const mostVolumes = 5000

// details reads what a plan tells besides: how long pods have to stop, whether the workloads go
// that are to take finalizers off, and what becomes of volumes. What cannot be read is not told,
// but for the volumes, of which it is said then.
func (a *asking) details(ctx context.Context, p *insight.Plan) {
	client, err := a.client()
	if err != nil {
		return
	}
	if namespaces := p.PodNamespaces(); len(namespaces) <= mostPodNamespaces {
		for _, namespace := range namespaces {
			if list, err := client.Resource(podKind).Namespace(namespace).List(ctx,
				metav1.ListOptions{Limit: mostPods}); err == nil {
				p.Grace(list.Items)
			}
		}
	}
	if namespaces := p.WorkloadNamespaces(); len(namespaces) <= mostPodNamespaces {
		for _, namespace := range namespaces {
			for _, kind := range workloadKinds {
				if list, err := client.Resource(kind).Namespace(namespace).List(ctx,
					metav1.ListOptions{Limit: mostWorkloads}); err == nil {
					p.Workloads(list.Items)
				}
			}
		}
	}
	if p.Claims() {
		list, err := client.Resource(volumeKind).List(ctx, metav1.ListOptions{Limit: mostVolumes})
		switch {
		case err != nil:
			p.Volumes(nil, snapshot.ReasonOf(err))
		case list.GetContinue() != "":
			p.Volumes(list.Items, fmt.Sprintf("there are more than %d volumes", mostVolumes))
		default:
			p.Volumes(list.Items, "")
		}
	}
}
