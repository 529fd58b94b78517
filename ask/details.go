package ask

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/ask/insight"
	"github.com/weir-dev/weir/ask/snapshot"
)

// mostVolumes bounds the volumes that are read to tell what becomes of those of claims.
const mostVolumes = 5000

// details adds to a plan what becomes of volumes. What cannot be read, the plan says is not known.
func (a *asking) details(ctx context.Context, p *insight.Plan) {
	client, err := a.client()
	if err != nil {
		return
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
