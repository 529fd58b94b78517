package ask

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/ask/insight"
	"github.com/weir-dev/weir/ask/snapshot"
)

const (
	// mostPodNamespaces and mostPods bound what is read to tell grace periods. Beyond them, none are
	// shown.
	mostPodNamespaces = 3
	mostPods          = 500
)

// mostVolumes bounds the volumes that are read to tell what becomes of those of claims.
const mostVolumes = 5000

// details adds to a plan how long pods may take to stop, whether workloads are deleted that have to
// remove finalizers, and what becomes of volumes. What cannot be read is left out; only for volumes
// the plan says so.
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
