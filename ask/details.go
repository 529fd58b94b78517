package ask

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/ask/insight"
	"github.com/weir-dev/weir/ask/snapshot"
)

const (
	// mostOperatorNamespaces bounds the namespaces whose workloads are read.
	mostOperatorNamespaces = 3
	// mostVolumes bounds the volumes that are read to tell what becomes of those of claims.
	mostVolumes = 5000
)

// details adds to a plan whether workloads are deleted that have to remove finalizers, and what
// becomes of volumes. What cannot be read is left out; only for volumes the plan says so.
func (a *asking) details(ctx context.Context, p *insight.Plan) {
	client, err := a.client()
	if err != nil {
		return
	}
	if namespaces := p.WorkloadNamespaces(); len(namespaces) <= mostOperatorNamespaces {
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
