package collect

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/request"
)

// firstTry is how long another collector has for an object before Weir checks whether a policy
// protects it.
const firstTry = 2 * time.Second

// leaves reports whether an action is left to another collector. Where a policy protects the
// object, that collector is refused, and would try forever, ever more rarely. So a dry run of the
// delete asks the policies, and an object whose delete they refuse is released from its owners. So
// is an object that is to be released anyway, which the other may take for garbage. While the
// object stays it is checked again, each time after as long as it has been garbage.
func (w *Workers) leaves(ctx context.Context, a graph.Action) bool {
	if a.Verb == graph.Lookup || a.Kept != "" {
		return false
	}
	uid := a.Object.UID
	if !w.Guards(a.Object.Kind) {
		w.done(uid)
		return true
	}
	since, known := w.ages.get(uid)
	if !known { // an event came while the action before was being carried out, and ended with it
		since = time.Now()
		w.ages.begin(nil, []types.UID{uid})
	}
	age := time.Since(since)
	if age < firstTry {
		w.queue.AddAfter(uid, firstTry-age)
		return true
	}
	if a.Verb == graph.Release {
		return false
	}
	err := w.Requester.TryDelete(ctx, a.Object, a.Propagation)
	if why, protected := request.Protected(err); protected {
		w.Store.Apply(graph.Protected{Object: a.Object, Why: why})
	} else if err != nil {
		w.Log.V(1).Info("could not try whether a policy protects the object", "object", a.Object.String(), "uid", uid,
			"err", err.Error())
	}
	w.queue.AddAfter(uid, min(age, mostBackoff))
	return true
}
