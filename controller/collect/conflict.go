package collect

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/request"
)

// mostTries is how often in a row an action is tried with a newer resourceVersion.
const mostTries = 3

// request carries out an action. A conflict means that the graph was behind. Then the object is
// read live, and if nothing that the decision rests on has changed, there or in the graph, the
// decision stands for the newer resourceVersion. Otherwise the watch has brought the change, or
// will, and with it another decision.
func (w *Workers) request(ctx context.Context, a graph.Action) error {
	if err := w.stillAwaited(ctx, a); err != nil {
		return err
	}
	version := a.Object.ResourceVersion
	for try := 1; ; try++ {
		err := w.send(ctx, a, version)
		if !apierrors.IsConflict(err) || request.RefusedByWebhook(err) || try == mostTries {
			return err
		}
		live, readErr := w.Requester.GetObject(ctx, a.Object)
		if readErr != nil || live.UID != a.Object.UID || live.ResourceVersion == version || !w.Store.Still(a, live) {
			return err
		}
		version = live.ResourceVersion
	}
}
